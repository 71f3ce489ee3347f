"""List the dead letters of a pipeline, and retry them: append their records to the source."""

from __future__ import annotations

import asyncio
import base64
import os
from collections import Counter
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ripple.cli.lib.exits import say
from ripple.cli.lib.number_options import count
from ripple.cli.lib.output_forms import add_format, many, write_line
from ripple.cli.lib.path_options import STORE, a_place, a_store, store_below
from ripple.cli.lib.rejects import shown
from ripple.connectors.dead_letter import file_text, text_of
from ripple.connectors.installed import load
from ripple.connectors.registry import connector_of
from ripple.connectors.retries import (
    Name,
    Outcome,
    Retries,
    Target,
    note_retried,
    read_journal,
    retries_path,
)
from ripple.core.arguments import plain
from ripple.core.causes import Causes
from ripple.core.errors import InputError
from ripple.core.named_uris import name_and_uri
from ripple.model.pipeline.input_names import is_answers
from ripple.storage.checkpoint import Checkpoints
from ripple.storage.fenced import DamagedError
from ripple.storage.log import Topic
from ripple.storage.log_uri import LogUri
from ripple.storage.store.opening import store_to_read
from ripple.storage.store.s3_settings import is_s3
from ripple.task.dead_letters.log import Found, letters_in
from ripple.task.dead_letters.queue import with_journals
from ripple.world import LiveClock, LiveDisk, LiveRandom
from ripple.world.errors import StoreError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from ripple.connectors.letter import Letter
    from ripple.connectors.retries import Retrying

EXAMPLES = (
    "ripple dead-letter list --checkpoint-dir state",
    "ripple dead-letter list --checkpoint-dir state --reason 'price is not a number' --format json",
    "ripple dead-letter retry --checkpoint-dir state --source log:data/trades --offset 41",
)

REFUSED_SHOWN_MAX = 5
_VERSION_CHARACTERS = 12


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the actions and their arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="list dead letters, and count them by reason")
    retry = actions.add_parser("retry", help="append their records to a topic, each once")
    for action in (listing, retry):
        action.add_argument(
            "--checkpoint-dir",
            "--dir",  # as ripple checkpoint has it
            type=a_store,
            required=True,
            metavar=STORE,
            help="the pipeline's checkpoint store, or its cluster's store",
        )
        action.add_argument("--pipeline", metavar="NAME", help="only of this pipeline")
        action.add_argument("--partition", type=count, metavar="N", help="only of this partition")
        action.add_argument("--input", metavar="NAME", help="only of this input")
        action.add_argument("--reason", metavar="TEXT", help="only with this text in the reason")
    listing.add_argument("--from", dest="start", type=count, metavar="OFFSET", help="and later")
    for action in (listing, retry):
        add_format(action)  # one object a line, without totals
    retry.add_argument(
        "--source",
        type=a_place,
        required=True,
        metavar="[SOURCE=]URI",
        help="target: log:DIR/TOPIC, or kafka:BROKERS/TOPIC for records that came from there; of a "
        "pipeline with several sources, which one it is",
    )
    retry.add_argument(
        "--offset", type=count, action="append", metavar="N", help="only this one; may be repeated"
    )


def run(options: argparse.Namespace) -> int:
    """Run the action; return the exit code."""
    return _retry(options) if options.action == "retry" else _list(options)


class _Box(NamedTuple):
    """One partition's dead letters. disk: of the checkpoint folder, None if in S3.

    is_asked: whether it has a log of answers, with failures.
    """

    place: str
    disk: LiveDisk | None
    pipeline: str
    partition: int
    is_asked: bool

    @property
    def journal_path(self) -> str:
        return retries_path(self.pipeline, self.partition)

    def __str__(self) -> str:
        return f"{self.pipeline}/{self.partition}"

    def letters(self, *, superseded: bool = False) -> list[Letter]:
        """Return the letters in effect."""
        return self.found(superseded=superseded).letters

    def found(self, *, superseded: bool = False) -> Found:
        """Return the letters in effect, and the damage among them."""
        return asyncio.run(self._found(superseded=superseded))

    async def _found(self, *, superseded: bool) -> Found:
        async with store_to_read(self.place, "--checkpoint-dir") as store:
            of = self.pipeline, self.partition
            found = await letters_in(store, *of, superseded=superseded)
            if not self.is_asked:
                return found
            # Slow to import, and few pipelines ask.
            from ripple.task.asks.answer_letters import failures_in  # noqa: PLC0415

            failures = await failures_in(store, *of)
            return Found(found.letters + failures.letters, found.damage + failures.damage)

    def readable(self) -> Found:
        """Return the letters in effect; if none can be read, the damage."""
        try:
            return self.found()
        except StoreError as error:
            return Found([], (str(error),))

    def sources(self) -> set[str]:
        """Return the sources that dead letters or a checkpoint name, if it can be read."""
        letters = {_source_of(letter) for letter in self.letters()}
        return letters | {name.partition("/")[0] for name in asyncio.run(self._inputs())}

    async def _inputs(self) -> Collection[str]:
        async with store_to_read(self.place, "--checkpoint-dir") as store:
            with suppress(DamagedError, StoreError):
                for one in await Checkpoints(store, self.pipeline, self.partition).list():
                    return one.cut
        return ()

    def retried(self) -> Collection[Name]:
        """Return the retried letters."""
        return () if self.disk is None else read_journal(self.disk, self.journal_path).retried


def _list(options: argparse.Namespace) -> int:
    boxes = _boxes(options)
    in_all = 0
    for box in boxes:
        retried = _retried(box)
        totals = Causes()
        if options.format == "text":
            print(f"Dead letters of {box}")
        found = box.readable()
        for letter in _chosen(found.letters, options):
            is_retried = None if retried is None else Name(letter.input, letter.offset) in retried
            totals.add(letter.cause)
            if options.format == "text":
                print(_line(letter, is_retried))
            else:
                write_line(options.format, _known(letter, retried=is_retried))
        in_all += totals.total()
        if options.format == "text":
            print(many(totals.total(), "letter"))
            for cause, number in totals.most_common():
                print(f"{number:>10}  {plain(cause)}")
        for damage in found.damage:
            say(f"{box}: {damage}: its dead letters are not listed")
    if options.format == "text" and len(boxes) != 1:
        print(
            f"{many(in_all, 'letter')} in {many(len(boxes), 'partition')}" if boxes else "0 letters"
        )
    return 0


def _retried(box: _Box) -> Collection[Name] | None:
    """Return the retried letters; None, with a message, if that is not known."""
    try:
        return box.retried()
    except (InputError, OSError) as error:
        say(f"{box}: it is not known which dead letters were retried: {error}")
        return None


def _line(letter: Letter, is_retried: bool | None) -> str:
    line = "" if letter.line_number is None else f"line {letter.line_number}"
    file = file_text(letter.file)
    at = " of ".join(filter(None, (line, None if file is None else plain(file))))
    columns = [
        f"  {letter.input}",
        f"offset {letter.offset}{at and f' ({at})'}",
        f"version {letter.version[:_VERSION_CHARACTERS]}",
        f"{plain(letter.cause)}: {shown(letter.raw)}{' (retried)' if is_retried else ''}",
    ]
    return "  ".join(columns)


def _known(letter: Letter, *, retried: bool | None) -> dict[str, Any]:
    known: dict[str, Any] = {
        "pipeline": letter.pipeline,
        "version": letter.version,
        "input": letter.input,
        "offset": letter.offset,
        "line_number": letter.line_number,
        "step": letter.step,
        "reason": letter.reason,
        "written_ns": letter.written_ns or None,  # of a failed call it is not known
        "retried": retried,
        "can_be_retried": letter.can_be_retried,
    }
    if (file := file_text(letter.file)) is not None:
        known["file"] = file
    text = text_of(letter.raw)
    if text is None:
        known["raw_base64"] = base64.b64encode(letter.raw).decode()
    else:
        known["raw"] = text
    return known


def _retry(options: argparse.Namespace) -> int:
    options.of, options.source = name_and_uri(options.source)
    connector = connector_of(options.source)
    place = None if connector is not None and connector.retries else _place(options.source)
    topic = None
    if place is not None:
        topic = Topic.open(LiveDisk(place.folder, make=False), place.topic)
    boxes = _boxes(options)
    if not boxes:
        if options.format == "text":
            print("0 retried")
        return 0
    if len(pipelines := sorted({box.pipeline for box in boxes})) > 1:
        raise InputError(f"choose with --pipeline: dead letters of {', '.join(pipelines)}")
    if options.of:
        _check_source(boxes, options.of)
    if options.input is None or not options.of:
        _check_target(boxes, options, place)
    holder = f"ripple dead-letter retry, process {os.getpid()} on {os.uname().nodename}"
    if place is None or topic is None:
        assert connector is not None
        opens = load(connector.scheme, connector.package, connector.retries)
        with opens(options.source.partition(":")[2], pipelines[0]) as target:
            for box in boxes:
                _resend(box, options, target, holder)
        return 0
    with Target(topic, LiveClock(), holder=holder) as target:
        for box in boxes:
            chosen = list(_chosen(box.letters(), options))
            _check_one_input(box, chosen)
            name = os.path.abspath(os.path.join(place.folder, place.topic))
            retries = Retries(
                # Letters in S3 have no folder: the journal of retries goes next to the target.
                box.disk or LiveDisk(place.folder, make=False),
                box.journal_path,
                target,
                name,
                clock=LiveClock(),
                random=LiveRandom(),
                holder=holder,
            )
            try:
                retries.finish(partial(box.letters, superseded=True))
                retries.send(chosen)
            finally:
                retries.close()
                _print_outcome(box, retries.outcome, options.format)
    return 0


def _resend(box: _Box, options: argparse.Namespace, target: Retrying, holder: str) -> None:
    """Send a partition's letters to a target that deduplicates by itself."""
    if box.disk is not None and (unfinished := read_journal(box.disk, box.journal_path).unfinished):
        raise InputError(
            f"a retry to {next(iter(unfinished)).target} was interrupted: finish it first, by a "
            "retry to the same target"
        )
    outcome, retried = Outcome(), box.retried()
    letters = list(_chosen(box.letters(), options))
    _check_one_source(box, letters)
    chosen = [(Name(one.input, one.offset), one) for one in letters]
    new = [(name, one) for name, one in chosen if name not in retried]
    outcome.before = len(chosen) - len(new)
    try:
        target.send((one for _, one in new), outcome)
        if box.disk is not None:
            refused = {Name(one.input, one.offset) for one, _ in outcome.refused}
            note_retried(
                box.disk,
                box.journal_path,
                target.name,
                [name for name, _ in new if name not in refused],
                clock=LiveClock(),
                random=LiveRandom(),
                holder=holder,
            )
    finally:
        _print_outcome(box, outcome, options.format)


def _print_outcome(box: _Box, outcome: Outcome, form: str) -> None:
    if form != "text":
        refused = [
            {"input": letter.input, "offset": letter.offset, "reason": reason}
            for letter, reason in outcome.refused
        ]
        counts = {name: getattr(outcome, name) for name in ("sent", "finished", "before")}
        where = {"pipeline": box.pipeline, "partition": box.partition}
        write_line(form, where | counts | {"refused": refused})
        return
    print(f"{box}: {outcome.sent} retried")
    if outcome.finished:
        print(f"{outcome.finished:>10}  of an interrupted retry, now finished")
    if outcome.before:
        print(f"{outcome.before:>10}  were retried before")
    for letter, reason in outcome.refused[:REFUSED_SHOWN_MAX]:
        say(f"{letter.input}, offset {letter.offset} cannot be retried: {reason}")
    if outcome.refused:
        print(f"{len(outcome.refused):>10}  cannot be retried")
        for reason, number in Counter(reason for _, reason in outcome.refused).most_common():
            print(f"{number:>20}  {reason}")


def _place(source: str) -> LogUri:
    try:
        return LogUri.whole(source)
    except InputError as error:
        raise InputError(f"--source {error}, or kafka:BROKERS/TOPIC") from error


def _chosen(letters: Iterable[Letter], options: argparse.Namespace) -> Iterator[Letter]:
    for letter in letters:
        if (
            options.input in (None, letter.input)
            and getattr(options, "of", "") in ("", _source_of(letter))
            and (options.reason is None or options.reason in letter.cause)
            and letter.offset >= (getattr(options, "start", None) or 0)
            and (getattr(options, "offset", None) is None or letter.offset in options.offset)
        ):
            yield letter


def _source_of(letter: Letter) -> str:
    return letter.input.partition("/")[0]


def _check_source(boxes: Iterable[_Box], source: str) -> None:
    names = sorted({_source_of(letter) for box in boxes for letter in box.letters()})
    if source not in names:
        raise InputError(
            f"there are no dead letters of source {source!r}: there are those of {', '.join(names)}"
        )


def _check_target(boxes: Iterable[_Box], options: argparse.Namespace, place: LogUri | None) -> None:
    """Raise InputError for a topic with the name of another source of the pipeline."""
    topic = options.source.partition("?")[0].rpartition("/")[2] if place is None else place.topic
    letters = [letter for box in boxes for letter in _chosen(box.letters(), options)]
    chosen = {_source_of(letter) for letter in letters}
    if not chosen or topic in chosen:
        return
    if any(topic in box.sources() for box in boxes):
        names = ", ".join(sorted(chosen))
        way = f"give the topic of {names}"
        if all(is_answers(letter.input) for letter in letters):
            way = "its other branches would count these rows again: give a topic of their own"
        raise InputError(
            f"--source {options.source}: {topic} is another source of the pipeline than {names}: "
            f"{way}, or say both {min(chosen)}= and --input to mean this one"
        )


def _check_one_source(box: _Box, chosen: Iterable[Letter]) -> None:
    names = sorted({_source_of(letter) for letter in chosen})
    if len(names) > 1:
        raise InputError(
            f"{box} has dead letters of the sources {', '.join(names)}: name the source to "
            f"retry, as in --source {names[0]}=URI"
        )


def _check_one_input(box: _Box, chosen: Iterable[Letter]) -> None:
    names = sorted({letter.input for letter in chosen})
    if len(names) > 1:
        raise InputError(f"{box} has dead letters of {', '.join(names)}: choose one with --input")


def _boxes(options: argparse.Namespace) -> list[_Box]:
    given = options.checkpoint_dir
    journals = asyncio.run(_with_journals(given))
    asked = journals["answers"]  # of which failures are dead letters
    # The journal of retries is in the folder; letters in S3 have none.
    disk = None if is_s3(given) else LiveDisk(Path(given), make=False)
    boxes = [_Box(given, disk, *one, one in asked) for one in sorted(journals["letters"] | asked)]
    return _wanted(boxes, options)


async def _with_journals(place: str) -> Mapping[str, set[tuple[str, int]]]:
    async with store_to_read(place, "--checkpoint-dir") as store:
        return await with_journals(store)


def _wanted(boxes: list[_Box], options: argparse.Namespace) -> list[_Box]:
    asked = [
        box
        for box in boxes
        if options.pipeline in (None, box.pipeline) and options.partition in (None, box.partition)
    ]
    if not asked:
        held = ", ".join(map(str, _filled(boxes))) or "none at all"
        place = options.checkpoint_dir
        raise InputError(f"no such dead letters in {place}; there are {held}{store_below(place)}")
    filled = _filled(asked)
    inputs = {name for names in filled.values() for name in names}
    if inputs and options.input is not None and options.input not in inputs:
        say(
            f"there are no dead letters of input {options.input!r}: there are those of "
            f"{', '.join(sorted(inputs))}"
        )
    return list(filled)


def _filled(boxes: Iterable[_Box]) -> dict[_Box, set[str]]:
    """Return the boxes with letters, or damage, and the inputs of their letters."""
    read = ((box, box.readable()) for box in boxes)
    return {box: {one.input for one in found.letters} for box, found in read if any(found)}

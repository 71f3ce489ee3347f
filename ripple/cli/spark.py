"""Replay a pipeline on Spark, and check on Spark that what runs live is right."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ripple.cli.exits import say_inline
from ripple.cli.numbers import count
from ripple.cli.places import a_place
from ripple.cli.user_file import FILE_HELP, load_plan
from ripple.connectors.locate import sinks_by_output
from ripple.errors import InputError, OutputError, RippleError
from ripple.spark.backfill.live import Live
from ripple.spark.backfill.receipt import Receipt
from ripple.spark.options import Bound
from ripple.spark.shares import source_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ripple.spark.progress import Standing
    from ripple.spark.report import Report

_ERASE = "\r\033[K"


class MissingError(RippleError):
    """A package or a program that Spark needs is missing."""


def configure(parser: argparse.ArgumentParser) -> None:
    """Add the actions and their arguments."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    replaying = actions.add_parser(
        "replay", help="a range of an input through a pipeline; same digests as ripple run"
    )
    _configure_input(replaying)
    replaying.add_argument(
        "--sink",
        type=a_place,
        action="append",
        metavar="[OUTPUT=][FORMAT:]DIR",
        help="a folder for an output's rows; parquet unless csv:, json:, orc: or delta: is before",
    )
    replaying.add_argument(
        "--digest-only", action="store_true", help="print the digest of all outputs, and no more"
    )
    replaying.add_argument(
        "--open",
        action="store_true",
        help="leave windows open at the end, as a live run does at that cut",
    )
    replaying.add_argument(
        "--dead-letter", type=a_place, metavar="DIR", help="write refused records there, as JSON"
    )
    replaying.add_argument(
        "--overwrite", action="store_true", help="replace folders that are there"
    )
    replaying.add_argument(
        "--report", type=a_place, metavar="FILE", help="write the report there, as JSON"
    )
    validating = actions.add_parser(
        "validate", help="crashes, live results and the engine itself; exit code 1 if one is wrong"
    )
    _configure_input(validating)
    validating.add_argument(
        "--crashes", type=count, default=100, metavar="N", help="at random points (%(default)s)"
    )
    validating.add_argument(
        "--oracle",
        type=count,
        default=100_000,
        metavar="N",
        help="first records of each share, by exact types (%(default)s)",
    )
    validating.add_argument(
        "--against",
        type=a_place,
        action="append",
        default=[],
        metavar="[OUTPUT=]PLACE",
        help="log:DIR/TOPIC or checkpoints:DIR, as live runs have written them from this source",
    )
    validating.add_argument("--seed", type=count, default=0, help="of the crashes (%(default)s)")
    validating.add_argument("--json", type=a_place, metavar="FILE", help="write what was found")
    validating.add_argument(
        "--html", type=a_place, metavar="FILE", help="write it as a page that needs nothing else"
    )
    validating.add_argument("--engine", default="ripple.engine:Engine", help=argparse.SUPPRESS)
    _configure_backfill(
        actions.add_parser(
            "backfill", help="history into checkpoints that ripple run or a cluster begins from"
        )
    )
    checking = actions.add_parser(
        "receipt", help="compute a backfill again and compare; exit code 1 if anything differs"
    )
    checking.add_argument("file", type=a_place, metavar="FILE.py[:NAME]", help=FILE_HELP)
    checking.add_argument("receipt", type=a_place, metavar="RECEIPT.json", help="of the backfill")
    _configure_header(checking)
    _configure_session(checking)


def _configure_backfill(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=a_place, metavar="FILE.py[:NAME]", help=FILE_HELP)
    parser.add_argument(
        "--history",
        type=a_place,
        required=True,
        metavar="PLACE",
        help="a file of any connector, a folder or a pattern of files, a log; in any order",
    )
    parser.add_argument(
        "--until", required=True, metavar="TIME", help="where history ends, in event time"
    )
    parser.add_argument(
        "--live",
        type=a_place,
        required=True,
        metavar="log:DIR/TOPIC",
        help="what goes on from there; it must reach back a bit before",
    )
    parser.add_argument(
        "--store",
        type=a_place,
        required=True,
        metavar="DIR",
        help="of the checkpoints, a folder or s3://bucket/prefix; no run may have begun in it",
    )
    parser.add_argument(
        "--partitions",
        type=count,
        metavar="N",
        help="of the pipeline: 1 for ripple run (as many as the topic, for a cluster)",
    )
    parser.add_argument(
        "--identity",
        metavar="FIELD,...",
        help="fields that no two records share together (all fields are compared)",
    )
    parser.add_argument(
        "--allow-unproven",
        action="store_true",
        help="also where the log has nothing before --until that could be compared",
    )
    parser.add_argument("--receipt", type=a_place, metavar="FILE", help="write it there, as JSON")
    parser.add_argument(
        "--dead-letter", type=a_place, metavar="FILE", help="write refused records, as JSON lines"
    )
    _configure_header(parser)
    _configure_session(parser)


def _configure_input(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=a_place, metavar="FILE.py[:NAME]", help=FILE_HELP)
    parser.add_argument(
        "--source",
        type=a_place,
        required=True,
        metavar="PLACE",
        help="log:DIR/TOPIC, a file of any connector, a folder or a pattern of files",
    )
    parser.add_argument(
        "--from", dest="start", metavar="WHERE", help="an offset, 0=17,1=20 by partition, or a time"
    )
    parser.add_argument("--to", dest="stop", metavar="WHERE", help="likewise, exclusive")
    _configure_header(parser)
    _configure_session(parser)


def _configure_header(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--header", action="store_true", help="the first line of CSV files names their columns"
    )


def _configure_session(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--master", metavar="URL", help="of Spark (local[*], or what spark-submit says)"
    )
    parser.add_argument(
        "--conf", action="append", default=[], metavar="KEY=VALUE", help="a setting of Spark"
    )


def run(options: argparse.Namespace) -> int:
    """Do what was asked; return the exit code."""
    return {
        "replay": _replay,
        "validate": _validate,
        "backfill": _backfill,
        "receipt": _receipt,
    }[options.action](options)


def _backfill(options: argparse.Namespace) -> int:
    until_ns = Bound.parse(options.until, "--until").time_ns
    if until_ns is None:
        raise InputError("--until is a time, such as 2024-02-26T14:30:00Z")
    plan = load_plan(options.file)  # before a JVM is started, as the places
    source_at(options.history, plan, header=options.header)
    Live.at(options.live, plan, until_ns, options.partitions)
    progress = Progress()
    with _spark(options) as spark:
        from ripple.spark.backfill.backfilling import Backfill  # noqa: PLC0415 - imports pyspark

        one = Backfill(
            spark,
            options.file,
            options.history,
            until_ns=until_ns,
            live=options.live,
            store=options.store,
            partitions=options.partitions,
            identity=options.identity.split(",") if options.identity else (),
            header=options.header,
        )
        try:
            found = one.run(allows_unproven=options.allow_unproven, show=progress.show)
        finally:
            progress.clear()
    if options.receipt is not None:
        Path(options.receipt).write_text(json.dumps(found.as_dict(), indent=1) + "\n")
    if options.dead_letter is not None:
        lines = [json.dumps(letter, ensure_ascii=False) for letter in found.letters]
        Path(options.dead_letter).write_text("".join(f"{line}\n" for line in lines))
    print(found.text())
    return 0


def _receipt(options: argparse.Namespace) -> int:
    try:
        known = Receipt.of(Path(options.receipt).read_text(), options.receipt)
    except OSError as error:
        raise InputError(f"cannot read {options.receipt}: {error.strerror}") from error
    progress = Progress()
    with _spark(options) as spark:
        from ripple.spark.backfill.backfilling import Backfill  # noqa: PLC0415 - imports pyspark

        one = Backfill(
            spark,
            options.file,
            known.history,
            until_ns=known.until_ns,
            live=known.live,
            store=known.store,
            partitions=len(known.partitions),
            identity=known.identity,
            header=options.header,
        )
        try:
            problems = one.check(known, show=progress.show)
        finally:
            progress.clear()
    print("\n".join([*problems, "", "does not hold" if problems else "holds"]).strip())
    return 1 if problems else 0


def _validate(options: argparse.Namespace) -> int:
    source_at(options.source, load_plan(options.file), **_range(options))
    with _spark(options) as spark:
        from ripple.spark.validating import validate  # noqa: PLC0415 - imports pyspark

        verdict = validate(
            spark,
            options.file,
            options.source,
            crashes=options.crashes,
            oracle_rows=options.oracle,
            against=tuple(options.against),
            seed=options.seed,
            engine=options.engine,
            **_range(options),
        )
    if options.json is not None:
        Path(options.json).write_text(json.dumps(verdict.as_dict(), indent=1) + "\n")
    if options.html is not None:
        Path(options.html).write_text(verdict.html())
    print(verdict.text())
    return 0 if verdict.holds else 1


def _replay(options: argparse.Namespace) -> int:
    plan = load_plan(options.file)
    source_at(options.source, plan, **_range(options))  # before a JVM is started
    sinks = sinks_by_output(plan, options.sink or [])
    if options.digest_only and (sinks or options.dead_letter):
        raise OutputError("--digest-only writes nothing: leave out --sink and --dead-letter")
    if not sinks and not options.digest_only:
        raise OutputError("name a folder for the output with --sink, or ask for --digest-only")
    arguments = _range(options)
    with _spark(options) as spark:
        from ripple.spark.replaying import Replay  # noqa: PLC0415 - imports pyspark

        one = Replay(spark, options.file, options.source, closes=not options.open, **arguments)
        progress = Progress()
        try:
            if options.digest_only:
                report = one.report(show=progress.show)
            else:
                report = one.write(
                    sinks,
                    letters=options.dead_letter,
                    overwrite=options.overwrite,
                    show=progress.show,
                )
        finally:
            progress.clear()
    _say(options, report)
    return 0


def _say(options: argparse.Namespace, report: Report) -> None:
    if options.report is not None:
        Path(options.report).write_text(json.dumps(report.as_dict(), indent=1) + "\n")
    print(report.digest if options.digest_only else report.text())


def _range(options: argparse.Namespace) -> dict[str, Any]:
    found: dict[str, Any] = {"header": options.header}
    for name, text in (("start", options.start), ("stop", options.stop)):
        if text is not None:
            found[name] = Bound.parse(text, "--from" if name == "start" else "--to")
    return found


@contextmanager
def _spark(options: argparse.Namespace) -> Iterator[Any]:
    """Hold a session of Spark for a command. Raises MissingError where it cannot be had."""
    settings = {}
    for text in options.conf:
        name, equals, value = text.partition("=")
        if not equals:
            raise OutputError(f"--conf takes KEY=VALUE, not {text!r}")
        settings[name] = value
    try:
        from ripple.spark.session import session  # noqa: PLC0415 - imports pyspark
    except ModuleNotFoundError as error:
        raise MissingError(str(error)) from error
    spark = session(options.master, **settings)
    try:
        yield spark
    finally:
        with suppress(Exception):  # a JVM that died has said so already
            spark.stop()


class Progress:
    """One line on standard error, where that is a terminal."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()

    def show(self, standing: Standing) -> None:
        """Redraw the line."""
        if self._shown:
            say_inline(f"{_ERASE}{standing.text()}")

    def clear(self) -> None:
        """Remove the line."""
        if self._shown:
            say_inline(_ERASE)

"""Division of an input into shares, one per task, each read in order."""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ripple.connectors.clock import PREFIX as CLOCK
from ripple.connectors.clock import ClockInputs, offset_at
from ripple.connectors.files.csv.dialect import divided
from ripple.connectors.files.folder.listing import files_at, is_pattern
from ripple.connectors.files.remote.address import is_remote
from ripple.connectors.locate import open_source
from ripple.connectors.log.inputs import LogInputs
from ripple.connectors.record_shape import RecordShape
from ripple.connectors.registry import OF_FILES, find, innermost
from ripple.core.errors import InputError
from ripple.model.pipeline.input_names import source_of
from ripple.spark.kafka_shares import PREFIX as KAFKA
from ripple.spark.kafka_shares import ranges_at
from ripple.spark.log_table import open_topic, range_of
from ripple.spark.marks import Mark, with_marks
from ripple.spark.options import BATCH_ROWS, NOWHERE, Bound, absolute_topic
from ripple.storage.log_uri import PREFIX
from ripple.task.one_shot import at_once, entries

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ripple.connectors.inputs import Inputs
    from ripple.connectors.registry import Uri
    from ripple.model.batch import Batch, Marker
    from ripple.model.pipeline.nodes import SourceSpec
    from ripple.model.pipeline.plan import Plan


@dataclass(frozen=True, slots=True)
class Share:
    """Records of one input from ``first`` up to ``end``, None for all.

    name: the engine's name of the input. place: its URI, for a connector. partition: of a log; None
    for others. rows: the number of records, if known. marks: the markers of a durable run.
    """

    number: int
    name: str
    place: str
    partition: int | None
    first: int
    end: int | None
    header: bool = False
    marks: tuple[Mark, ...] = ()

    @property
    def is_clock(self) -> bool:
        """Whether it has the ticks of a clock, which are endless."""
        return self.place.startswith(CLOCK)

    @property
    def rows(self) -> int | None:
        """How many offsets it has, None where that is not known."""
        return None if self.end is None else max(self.end - self.first, 0)

    def inputs(self, plan: Plan, batch_rows: int) -> Inputs:
        """Return its inputs. Raises InputError and SchemaError."""
        source = source_of(plan, self.name)
        if self.partition is None:
            return open_source(
                self.place,
                source.schema,
                name=self.name,
                checks=source.checks,
                batch_rows=batch_rows,
                header=self.header,
                table=source.table,
                needs_all=plan.has_versions_of(source),
            )
        shape = RecordShape.of(source)
        topic, _ = open_topic(self.place)
        return LogInputs(topic, {self.name: self.partition}, shape, batch_rows)

    def entries(
        self,
        plan: Plan,
        batch_rows: int = BATCH_ROWS,
        *,
        since: int | None = None,
        until: int | None = None,
    ) -> Iterator[Batch | Marker]:
        """Yield its batches and markers, or those ``since`` an offset and ``until`` another.

        Raises InputError, also if the input is shorter now than when it was planned.
        """
        at = self.first if since is None else since
        end = self.end if until is None else until
        inputs = self.inputs(plan, batch_rows)
        try:
            stop = None if end is None else {self.name: end}
            found = entries(inputs, batch_rows, {self.name: at}, stop)
            for entry in with_marks(found, self.marks, at, end) if self.marks else found:
                at = entry.next_offset
                yield entry
        finally:
            at_once(inputs.close())
        if end is not None and at < end:
            raise InputError(f"{self.place} ends at offset {at}, and ended at {end} before")


@dataclass(frozen=True, slots=True)
class Source:
    """The shares of one source of a plan, by its name.

    keyed_by: the fields by whose murmur2 records are partitioned, () for none, None for one share,
    or if unknown. are_files: files are no partitions, even if the pipeline declares a key.
    """

    name: str
    place: str
    shares: tuple[Share, ...]
    keyed_by: tuple[str, ...] | None
    are_files: bool = False


def check_inputs(shares: Iterable[Share], names: Iterable[str], what: str) -> None:
    """Raise InputError where a run has read inputs that no share is of. what: of them."""
    own = [share.name for share in shares]
    if missing := sorted(set(names).difference(own)):
        raise InputError(
            f"{what} {', '.join(map(repr, missing))}, and the source has {', '.join(own)}: "
            "name the source as the run did"
        )


def source_at(
    place: str,
    plan: Plan,
    source: SourceSpec,
    *,
    start: Bound = NOWHERE,
    stop: Bound = NOWHERE,
    header: bool = False,
    files_apart: bool = False,
) -> Source:
    """Return a source of a plan at ``place``, in shares.

    place: ``log:DIR/TOPIC[/PARTITION]``; ``kafka:BROKERS/TOPIC``; another URI of a connector; or a
    folder or a pattern of files, one input in the order of their names, as for ``rp.run``. start,
    stop: the range of each; without a stop, ticks of a clock have no end. files_apart: whether each
    file is an input of its own, for work that sorts records. Raises InputError and ConnectorError.
    """
    if isinstance(place, ClockInputs):
        place = place.uri
    if not isinstance(place, str):
        raise InputError(
            "a source is a URI (log:DIR/TOPIC, kafka:BROKERS/TOPIC, a file, a folder or a pattern "
            f"of files), which tasks read themselves, not a {type(place).__name__}: name its "
            "input, or write it, as with df.write.parquet('DIR'), and name parquet:DIR; what is in "
            "Python alone is read by rp.run"
        )
    if place.startswith(CLOCK):
        return _ticks(place, plan, source.name, start, stop)
    if place == "-":
        raise InputError("executors cannot read standard input: name a file or a log")
    if place.startswith(PREFIX):
        return _log(place, source.name, start, stop)
    if place.startswith(KAFKA):
        ranges, key = ranges_at(place, plan, source, start, stop)
        shares = tuple(
            Share(number, name, one, None, first, end)
            for number, (name, one, first, end) in enumerate(ranges)
        )
        return Source(source.name, place, shares, key)
    for bound in (start, stop):
        if bound.time_ns is not None:
            advice = "give offsets of records" if len(plan.sources) == 1 else "leave out the range"
            raise InputError(f"{place} cannot be searched by time: {advice}")
    whole = None if files_apart else _in_order(place)
    if whole is not None:
        share = Share(0, source.name, whole, None, start.at(0) or 0, stop.at(0), header)
        at_once(share.inputs(plan, BATCH_ROWS).close())  # checks the files
        return Source(source.name, place, (share,), None, are_files=True)
    return _read_whole(place, source.name, start, stop, header=header)


def _in_order(place: str) -> str | None:
    """Return the URI of the files of a folder or a pattern as one input; None for other places.

    Also None if the names of the files do not tell the format that the scheme of ``place`` has.
    """
    found = find(place, "source")
    around, within = _parts(found)
    if within is not None:
        whole = _in_order(within)
        return None if whole is None else f"{around}{whole}"
    path, options = divided(found.path)
    if found.connector.path_of is None or not (os.path.isdir(path) or is_pattern(path)):
        return None
    files = files_at(path)
    if found.connector.scheme != OF_FILES:
        try:
            kinds = {find(file.path, "source").connector.scheme for file in files}
        except InputError:
            return None
        if kinds != {found.connector.scheme}:
            return None
    return f"{OF_FILES}:{_with_options(os.path.abspath(path), options)}"


def _read_whole(place: str, source: str, start: Bound, stop: Bound, *, header: bool) -> Source:
    """Return files, or another input that is no log."""
    files = _files(place)
    if not files:
        raise InputError(f"cannot read {place}: there is no file")
    names = [source]
    if len(files) > 1:
        names = [f"{source}/{number}" for number in range(len(files))]
    shares = tuple(
        Share(number, name, file, None, start.at(number) or 0, _end(file, stop.at(number)), header)
        for number, (name, file) in enumerate(zip(names, files, strict=True))
    )
    return Source(source, place, shares, () if len(shares) > 1 else None, are_files=True)


def _ticks(place: str, plan: Plan, source: str, start: Bound, stop: Bound) -> Source:
    """Return the ticks in a range; its bounds tell them, whether they have come or not."""
    first, end = (
        bound.at(0) if bound.time_ns is None else offset_at(place, bound.time_ns)
        for bound in (start, stop)
    )
    share = Share(0, source, place, None, first or 0, end)
    share.inputs(plan, BATCH_ROWS)  # checks the record
    return Source(source, place, (share,), None)


def _log(place: str, source: str, start: Bound, stop: Bound) -> Source:
    topic, only = open_topic(place)
    numbers = [only] if only is not None else list(range(topic.partitions))
    path = absolute_topic(place, topic)
    shares = []
    for rank, number in enumerate(numbers):
        first, end = range_of(topic, number, start, stop)
        name = source if len(numbers) == 1 else f"{source}/{number}"
        shares.append(Share(rank, name, path, number, first, end))
    return Source(source, place, tuple(shares), topic.key if len(shares) > 1 else None)


def _files(place: str) -> list[str]:
    """Return the places of files in a folder, or matching a pattern; or of the file itself."""
    path, options = divided(place)
    if os.path.isdir(path):  # the formats follow from the names
        within = (_with_options(os.path.join(path, name), options) for name in _visible(path))
        return [file for one in within for file in _files(one)]
    found = find(place, "source")
    around, behind = _parts(found)
    if behind is not None:
        return [f"{around}{one}" for one in _files(behind)]
    scheme = place[: len(place) - len(found.path)] if place.endswith(found.path) else ""
    path, options = divided(found.path)
    if found.connector.path_of is None or is_remote(path):
        return [place]
    if os.path.isdir(path):
        paths = [os.path.join(path, name) for name in _visible(path)]
    elif not os.path.exists(path) and glob.has_magic(path):
        paths = sorted(glob.glob(path))
    else:
        paths = [path]
        if not os.path.exists(path):
            raise InputError(f"cannot read {path}: there is no such file")
    return [_with_options(f"{scheme}{os.path.abspath(one)}", options) for one in paths]


def _parts(found: Uri) -> tuple[str, str | None]:
    """Return the begin of a URI around another, with its file from the root, and that other.

    Of another URI no begin, and None. Raises InputError, also for a topic.
    """
    if found.connector.within is None:
        return "", None
    within = found.connector.within(found.path)
    if innermost(within).startswith((PREFIX, KAFKA)):
        raise InputError(
            f"tasks of Spark transform files, and no records of a topic, {within}: write them to a "
            "topic transformed, as ripple log append does, and name that"
        )
    file = found.path.removesuffix(within).removesuffix(",")
    return f"{found.connector.scheme}:{os.path.abspath(file)},", within


def _with_options(place: str, options: str) -> str:
    return f"{place}?{options}" if options else place


def _visible(folder: str) -> list[str]:
    return [name for name in sorted(os.listdir(folder)) if name[0] not in "._"]


def _end(file: str, stop: int | None) -> int | None:
    """Return the end; the number of records, if the file has it."""
    found = find(file, "source")
    rows: int | None = None
    if found.connector.scheme == "parquet":
        import pyarrow.parquet as pq  # noqa: PLC0415 - slow to import

        from ripple.connectors.files.parquet.files import readable  # noqa: PLC0415 - likewise

        with readable(found.path):
            rows = pq.ParquetFile(found.path).metadata.num_rows
    elif found.connector.scheme == "synthetic":
        rows = int(found.path) if found.path.isdigit() else None
    if stop is None:
        return rows
    if rows is not None and stop > rows:
        raise InputError(f"{file} has {rows} records, and {stop} were requested")
    return stop

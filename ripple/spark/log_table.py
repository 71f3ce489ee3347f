"""A topic as a table: its splits, and their batches."""

from __future__ import annotations

import json
import operator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ripple.connectors.log.sink import cut_at
from ripple.core.errors import InputError
from ripple.engine.operators.arrow_types import shown_fields
from ripple.model.batch import Batch
from ripple.model.schema.logical.columns import as_shown
from ripple.model.schema.logical.fields import has_logical
from ripple.model.schema.types import DateTime, bare_type
from ripple.spark import options as given
from ripple.spark.options import BATCH_ROWS, NOWHERE, Bound
from ripple.storage.log import PartitionReader, Topic, TopicError
from ripple.storage.log.body import columns_of
from ripple.storage.log_uri import PREFIX, LogUri
from ripple.world.live_disk import LiveDisk

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ripple.model.batch import Marker

OPTIONS = ("path", "partitions", "from", "to", "batch_rows", "columns", "timestamps", "cut")
PARTITION, OFFSET, CUT = "partition", "offset", "cut"
_MICROS = pa.timestamp("us", "UTC")
_HOLDS = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def open_topic(place: str) -> tuple[Topic, int | None]:
    """Return the topic at ``DIR/TOPIC[/PARTITION]``, and the partition if one is named.

    Raises InputError.
    """
    at = LogUri.parse(place)
    try:
        topic = Topic.open(LiveDisk(at.folder, make=False), at.topic)
        topic.folder(at.partition or 0)
    except (TopicError, OSError) as error:
        raise InputError(f"cannot read {PREFIX}{place.removeprefix(PREFIX)}: {error}") from error
    return topic, at.partition


def range_of(topic: Topic, partition: int, start: Bound, stop: Bound) -> tuple[int, int]:
    """Return the first and the end offset of a partition's range.

    Raises InputError if the range is missing or was removed; without a start it is all records ever
    written.
    """
    with PartitionReader(topic, partition) as reader:
        first, end = reader.range()
        place = f"{PREFIX}{topic.path}/{partition}"
        begin = _offset(reader, start, 0, end)
        until = _offset(reader, stop, end, end)
    if begin < first:
        raise InputError(
            f"{place} begins at offset {first}: earlier records were removed, and {begin} was "
            "requested; give a start"
        )
    for asked in (begin, until):
        if asked > end:
            raise InputError(f"{place} ends at offset {end}, and {asked} was requested")
    return begin, max(begin, until)


def _offset(reader: PartitionReader, bound: Bound, default: int, end: int) -> int:
    if bound.time_ns is not None:
        topic = reader.topic
        if topic.time_field is None:
            raise InputError(f"{topic.path} has no time field: give offsets")
        return min(reader.seek_time(bound.time_ns), end)
    found = bound.at(reader.partition)
    return default if found is None else found


@dataclass(frozen=True, slots=True)
class Split:
    """A range of one partition's records. columns, timestamps, cut: see ``table_schema``."""

    place: str
    partition: int
    first: int
    end: int
    batch_rows: int = BATCH_ROWS
    columns: tuple[str, ...] = ()
    timestamps: bool = False
    cut: bool = False


@dataclass(frozen=True, slots=True)
class LogTable:
    """The table of ``ripple.log``: the splits, and their columns."""

    splits: tuple[Split, ...]
    schema: pa.Schema
    time_field: str | None

    @classmethod
    def of(cls, options: Mapping[str, str]) -> LogTable:
        """Plan the reading of a log. Raises InputError."""
        found = given.checked(options, OPTIONS, ("path",), "ripple.log")
        topic, only = open_topic(found["path"])
        numbers: tuple[int, ...] = tuple(range(topic.partitions))
        if only is not None:
            numbers = (only,)
        if "partitions" in found:
            wanted = given.numbers(found["partitions"], "partitions")
            for number in wanted:
                if number not in numbers:
                    raise InputError(f"{found['path']} has no partition {number}: {numbers}")
            numbers = wanted
        start = Bound.parse(found["from"], "from") if "from" in found else NOWHERE
        stop = Bound.parse(found["to"], "to") if "to" in found else NOWHERE
        rows = given.whole_number(found.get("batch_rows", str(BATCH_ROWS)), "batch_rows")
        if rows < 1:
            raise InputError("batch_rows must be 1 or more")
        place = given.absolute_topic(found["path"], topic)
        columns = given.names(found["columns"], "columns") if "columns" in found else ()
        shown = {
            "timestamps": given.yes_or_no(found.get("timestamps", "false"), "timestamps"),
            "cut": given.yes_or_no(found.get("cut", "false"), "cut"),
        }
        splits = tuple(
            Split(place, number, *range_of(topic, number, start, stop), rows, columns, **shown)
            for number in numbers
        )
        schema = table_schema(topic, columns, **shown)
        return cls(splits, schema, topic.time_field)

    def narrowed(self, column: str, operation: str, value: int) -> LogTable:
        """Return the table without records for which ``column operation value`` is false.

        column: ``partition``, ``offset`` or the time field; for that only the start is narrowed
        (event times need not be in order, so Spark filters the rest). operation: one of ``= < <= >
        >=``.
        """
        if column == PARTITION:
            holds = _HOLDS[operation]
            return self._with(tuple(one for one in self.splits if holds(one.partition, value)))
        if column == OFFSET:
            low = {"=": value, ">": value + 1, ">=": value}.get(operation)
            high = {"=": value + 1, "<": value, "<=": value + 1}.get(operation)
        else:
            low = high = None
        splits = []
        for one in self.splits:
            begin = max(one.first, low) if low is not None else one.first
            until = min(one.end, high) if high is not None else one.end
            if column == self.time_field and operation in ("=", ">", ">="):
                topic, _ = open_topic(one.place)
                at = value + (operation == ">")
                begin = max(begin, range_of(topic, one.partition, Bound(time_ns=at), NOWHERE)[0])
            if begin < until:
                splits.append(replace(one, first=begin, end=until))
        return self._with(tuple(splits))

    def _with(self, splits: tuple[Split, ...]) -> LogTable:
        return LogTable(splits, self.schema, self.time_field)


def table_schema(
    topic: Topic, chosen: tuple[str, ...] = (), *, timestamps: bool = False, cut: bool = False
) -> pa.Schema:
    """Return the columns of a topic's table: those of its schema, ``partition`` and ``offset``.

    Dates and decimals are such columns, and times nanoseconds, as in tables of results. chosen:
    names of those to read, () for all. timestamps: whether each time in nanoseconds has a
    TIMESTAMP beside it, see ``times_in``. cut: whether the log of an output has the cut of each
    change, offsets by input as JSON, null in other logs. Raises InputError where the schema has one
    of our names, and for an unknown column.
    """
    stored, fields = columns_of(topic.schema), topic.schema.fields
    columns = [
        column.with_type(shown.type) if has_logical(field.type) else column
        for column, field, shown in zip(stored, fields, shown_fields(fields), strict=True)
    ]
    beside = times_in(topic) if timestamps else {}
    last = [pa.field(CUT, pa.string())] if cut else []
    for own in (PARTITION, OFFSET, *(one.name for one in last), *beside.values()):
        if any(field.name == own for field in columns):
            raise InputError(f"{topic.path} has a field {own!r}, a reserved column of the table")
    whole = pa.schema(
        [
            *columns,
            *(pa.field(name, _MICROS) for name in beside.values()),
            pa.field(PARTITION, pa.int32(), nullable=False),
            pa.field(OFFSET, pa.int64()),
            *last,
        ]
    )
    for name in chosen:
        if name not in whole.names:
            raise InputError(
                f"{topic.path} has no column {name!r}: there are {', '.join(whole.names)}"
            )
    return pa.schema([whole.field(name) for name in chosen]) if chosen else whole


def times_in(topic: Topic) -> dict[str, str]:
    """Return the times in nanoseconds of a topic, and the names of TIMESTAMPs beside them.

    A field ``NAME_ns`` has one called ``NAME``, the event time and each ``datetime`` one called
    ``NAME_time``.
    """
    found = {}
    for field in topic.schema.fields:
        name = field.name
        if name.endswith("_ns") and name != "_ns":
            found[name] = name.removesuffix("_ns")
        elif name == topic.time_field or bare_type(field.type) == DateTime():
            found[name] = f"{name}_time"
    return found


def batches_of(split: Split) -> Iterator[pa.RecordBatch]:
    """Yield the records of a split, in order. Raises as readers of a log do."""
    topic, _ = open_topic(split.place)
    schema = table_schema(topic, split.columns, timestamps=split.timestamps, cut=split.cut)
    beside = {name: time for time, name in times_in(topic).items()} if split.timestamps else {}
    with (
        PartitionReader(topic, split.partition) as reader,
        PartitionReader(topic, split.partition) as notes,
    ):
        for entry in reader.read(split.first, split.end):
            cut = None
            if isinstance(entry, Batch) and split.cut and CUT in schema.names:
                cut = cut_at(notes, entry.next_offset - 1)
            yield from _pieces(entry, split, schema, beside, cut)


def _pieces(
    entry: Batch | Marker,
    split: Split,
    schema: pa.Schema,
    beside: Mapping[str, str],
    cut: Mapping[str, int] | None,
) -> Iterator[pa.RecordBatch]:
    if not isinstance(entry, Batch):
        return
    if entry.rejected:
        raise InputError(
            f"{PREFIX}{split.place}/{split.partition}: {entry.rejected[0].reason}, from offset "
            f"{entry.rejected[0].offset} on"
        )
    records, offsets = entry.records, entry.offsets()
    for start in range(0, records.num_rows, split.batch_rows):
        part = records.slice(start, split.batch_rows)
        number = pa.array(np.full(part.num_rows, split.partition, np.int32))
        own = {PARTITION: number, OFFSET: pa.array(offsets[start : start + part.num_rows])}
        if split.cut:
            text = None if cut is None else json.dumps(cut, sort_keys=True)
            own[CUT] = pa.repeat(pa.scalar(text, pa.string()), part.num_rows)
        columns = [
            own[name]
            if name in own
            else _micros(part.column(beside[name]))
            if name in beside
            else as_shown(part.column(name), schema.field(name).type)
            for name in schema.names
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _micros(times_ns: pa.Array) -> pa.Array:
    """Return times as Spark has them: cut to microseconds."""
    times = times_ns.cast(pa.int64()).cast(pa.timestamp("ns", "UTC"))
    return pc.floor_temporal(times, unit="microsecond").cast(_MICROS)

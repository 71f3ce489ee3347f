"""The newest rows of outputs of events, read from the logs that their sinks write."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ripple.core.errors import InputError
from ripple.model.batch import Batch
from ripple.storage.log import PartitionReader, Topic, TopicError
from ripple.storage.log.body import columns_of
from ripple.storage.log_uri import PREFIX, LogUri
from ripple.world.live_disk import LiveDisk

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa


class NewestEvents(NamedTuple):
    """Rows of a log. ranges: per partition the first offset of them, and the one after the last."""

    rows: pa.Table
    ranges: Mapping[int, tuple[int, int]]


def places_of(given: Sequence[str]) -> dict[str, str]:
    """Return the places of ``NAME=log:DIR/TOPIC[/PARTITION]`` by name. Raises InputError."""
    found: dict[str, str] = {}
    for text in given:
        name, equals, place = text.partition("=")
        if not name or not equals or not place.startswith(PREFIX):
            raise InputError(f"--events is NAME=log:DIR/TOPIC[/PARTITION], not {text!r}")
        if name in found:
            raise InputError(f"--events names {name!r} twice: leave one out")
        found[name] = place
    return found


def newest_of(place: str, count: int) -> NewestEvents:
    """Return up to ``count`` of the newest rows of each partition, partition by partition.

    Raises InputError where there is no such log, and LogDamagedError.
    """
    import pyarrow as pa  # noqa: PLC0415 - slow

    from ripple.model.schema.logical.showing import showing  # noqa: PLC0415 - needs pyarrow

    at = LogUri.parse(place)
    batches, ranges = [], {}
    try:
        topic = Topic.open(LiveDisk(at.folder, make=False), at.topic)
        numbers = range(topic.partitions) if at.partition is None else [at.partition]
        for number in numbers:
            with PartitionReader(topic, number) as reader:
                first, end = reader.range()
                first = max(first, end - count)
                entries = reader.read(first, end) if first < end else ()
                batches += [entry.records for entry in entries if isinstance(entry, Batch)]
            ranges[number] = first, end
    except (TopicError, OSError) as error:
        raise InputError(f"cannot read {place}: {error}") from error
    rows, show = (
        pa.Table.from_batches(batches, columns_of(topic.schema)),
        showing(topic.schema.fields),
    )
    if show is not None:
        parts = rows.to_batches() or [pa.RecordBatch.from_pylist([], rows.schema)]
        rows = pa.Table.from_batches([show(part) for part in parts])
    return NewestEvents(rows, ranges)

"""One live partition, and the search for the record from which on it is live."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ripple.connectors.inputs import Signal, TimedInputs
from ripple.core.errors import InputError
from ripple.model.batch import Batch
from ripple.spark.kafka_shares import one_of
from ripple.spark.log_table import open_topic, range_of
from ripple.spark.options import BATCH_ROWS, NOWHERE, Bound, absolute_topic
from ripple.spark.shares import Share
from ripple.storage.log_uri import PREFIX

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from ripple.connectors.inputs import Inputs
    from ripple.core.cut import Cut
    from ripple.model.pipeline.nodes import SourceSpec

# Among this many first records of a log, not all are late.
_FIRST_RECORDS = 16
# Within this distance before a cut in Kafka there is a record that identifies the topic.
_BACK_ROWS = 1 << 10


@dataclass(frozen=True, slots=True)
class LiveInput:
    """One partition of the live input.

    place, number: its location, see ``Share``. first: the first readable offset. begins: the live
    cut. end: its end at the time of planning. identity: the identity of the input before
    ``begins``. first_ns: the latest event time among its first records, None if there are none
    before ``begins``; records removed before them are later than that by at most the allowed
    disorder.
    """

    name: str
    place: str
    number: int | None
    first: int
    begins: int
    end: int
    identity: str
    first_ns: int | None

    def share(self, rank: int, first: int, end: int) -> Share:
        """Return a range of it as the share with number ``rank``."""
        return Share(rank, self.name, self.place, self.number, first, end)


async def looked_at(
    place: str, source: SourceSpec, inputs: Inputs, until_ns: int
) -> tuple[LiveInput, ...]:
    """Return the inputs at a place, each live from its first record at or after ``until_ns``.

    Those of a table are live from their first record, see ``history_at``. Closes them. Raises
    InputError for a log without times.
    """
    look = _in_log if place.startswith(PREFIX) else _in_kafka
    try:
        return await look(place, source, inputs, until_ns)
    finally:
        await inputs.close()


async def _in_log(
    place: str, source: SourceSpec, inputs: Inputs, until_ns: int
) -> tuple[LiveInput, ...]:
    topic, only = open_topic(place)
    if topic.time_field is None and source.table is None:
        raise InputError(f"{place} has no time field to find the end of history by")
    numbers = range(topic.partitions) if only is None else (only,)
    until = NOWHERE if source.table is not None else Bound(time_ns=until_ns)
    cut = {
        name: range_of(topic, number, until, NOWHERE)[0]
        for name, number in zip(inputs.names, numbers, strict=True)
    }
    path = absolute_topic(place, topic)
    return await _inputs_at(source, inputs, cut, [(path, number) for number in numbers])


async def _in_kafka(
    place: str, source: SourceSpec, inputs: Inputs, until_ns: int
) -> tuple[LiveInput, ...]:
    """Find the cut in a topic: from the offset that the broker has for the time, record by record.

    A record is written after its event, so nothing before that offset is at ``until_ns`` or later;
    the reading tasks verify that.
    """
    firsts, _ = await inputs.bounds()
    cut = firsts if source.table is not None else await _until(source, inputs, until_ns)
    # The record right before the cut identifies the topic: inputs report it after reading.
    back = {name: max(firsts[name], offset - _BACK_ROWS) for name, offset in cut.items()}
    async for _ in _batches(inputs, back, cut):
        pass
    count = len(inputs.names)
    places = [(place if count == 1 else one_of(place, one), None) for one in range(count)]
    return await _inputs_at(source, inputs, cut, places)


async def _until(source: SourceSpec, inputs: Inputs, until_ns: int) -> Cut:
    """Return the offsets of the first records at or after ``until_ns``."""
    assert isinstance(inputs, TimedInputs), "of a topic of Kafka"
    since = await inputs.since(max(until_ns // 1_000_000, 0))
    firsts, ends = await inputs.bounds()
    cut = dict(ends)
    for name in inputs.names:
        start = min(max(firsts[name], since[name]), ends[name])
        async for _, batch in _batches(inputs, {**ends, name: start}, ends):
            at = _first_at(source, batch, until_ns)
            if at is not None:
                cut[name] = at
                break
    return cut


async def _inputs_at(
    source: SourceSpec, inputs: Inputs, cut: Cut, places: Sequence[tuple[str, int | None]]
) -> tuple[LiveInput, ...]:
    """Return the inputs that are live from a cut on."""
    identities = await inputs.identities(cut)
    firsts, ends = await inputs.bounds()
    stop = {name: min(at, firsts[name] + _FIRST_RECORDS) for name, at in cut.items()}
    first_ns: dict[str, int] = {}
    async for name, batch in _batches(inputs, firsts, stop):
        found = pc.max(_times(source, batch)).as_py()
        if found is not None:
            first_ns[name] = max(first_ns.get(name, found), found)
    return tuple(
        LiveInput(
            name,
            *at,
            firsts[name],
            cut[name],
            ends[name],
            identities[name],
            first_ns.get(name),
        )
        for name, at in zip(inputs.names, places, strict=True)
    )


def _first_at(source: SourceSpec, batch: Batch, until_ns: int) -> int | None:
    """Return the offset of a batch's first record at or after ``until_ns``."""
    at = pc.index(pc.greater_equal(_times(source, batch), until_ns), True).as_py()
    return None if at < 0 else int(batch.offsets()[at])


def _times(source: SourceSpec, batch: Batch) -> pa.Array:
    return batch.records.column(source.time_field).cast(pa.int64())


async def _batches(inputs: Inputs, cut: Cut, stop: Cut) -> AsyncIterator[tuple[str, Batch]]:
    """Yield (input, batch) for the records between two cuts."""
    at = dict(cut)
    await inputs.open(at, BATCH_ROWS, stop)
    while True:
        found = inputs.next(at)
        if found is Signal.ENDED:
            return
        if found is Signal.WAITING:
            await inputs.more()
            continue
        name, entry = found
        at[name] = entry.next_offset
        if isinstance(entry, Batch) and entry.records.num_rows:
            yield name, entry

"""The live input that goes on where history ends: an event log, or a topic of Kafka."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ripple.batch import Batch
from ripple.connectors.inputs import Signal, keyed_by
from ripple.connectors.locate import open_inputs
from ripple.errors import InputError
from ripple.log_place import PREFIX, LogPlace
from ripple.partition.restoring import notes_of
from ripple.pipeline.stages import divided_why, stages_of
from ripple.spark.fold import check_triggers
from ripple.spark.kafka_shares import PREFIX as KAFKA
from ripple.spark.kafka_shares import one_of
from ripple.spark.log_table import open_topic, range_of
from ripple.spark.options import BATCH_ROWS, NOWHERE, Bound
from ripple.spark.shares import Share

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ripple.connectors.inputs import Inputs
    from ripple.cut import Cut
    from ripple.pipeline.plan import Plan

# Of so many the first records of a log, not all will have come late.
_FIRST_RECORDS = 16
# So far before a cut in Kafka there is a record, by which the topic is known again.
_BACK_ROWS = 1 << 10


@dataclass(frozen=True, slots=True)
class LiveInput:
    """One partition of what is live.

    place, number: where a task finds it, see ``Share``. first: the offset that it can be read from.
    begins: where what is live begins. end: where it ended when it was looked at. identity: what
    tells the input up to ``begins``. first_ns: the latest event time among its first records, None
    if there are none before ``begins``: what was removed before them is not later than that by more
    than records may be out of order.
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
        """Return a range of it as a share of number ``rank``."""
        return Share(rank, self.name, self.place, self.number, first, end)


@dataclass(frozen=True, slots=True)
class Live:
    """Partitions, each live from its first record at ``until_ns`` or later on.

    key: by whose murmur2 records are in them, () where there is but one. partitions: how many the
    pipeline has; input i is read by partition i mod that.
    """

    until_ns: int
    key: tuple[str, ...]
    inputs: tuple[LiveInput, ...]
    partitions: int

    @classmethod
    def at(cls, place: str, plan: Plan, until_ns: int, partitions: int | None = None) -> Live:
        """Look at ``log:DIR/TOPIC`` or ``kafka:BROKERS/TOPIC``.

        Raises InputError for what cannot be gone on from.
        """
        if plan.source.time_field is None:
            raise InputError(
                f"{plan.source.name} has no event time, by which history would end somewhere"
            )
        if not place.startswith((PREFIX, KAFKA)):
            raise InputError(
                f"what goes on is a log or a topic, {PREFIX}DIR/TOPIC or {KAFKA}BROKERS/TOPIC, "
                f"not {place!r}"
            )
        inputs = open_inputs(place, plan, 1, follow=False)
        names = inputs.names
        key = keyed_by(inputs) if len(names) > 1 else ()
        why = divided_why(plan, key) if len(names) > 1 else None
        if key is None:
            why = "it does not say by what its records are divided, as in ?key=symbol"
        if key is None or why is not None:
            raise InputError(f"{place} cannot be gone on from, partition by partition: {why}")
        count = len(names) if partitions is None else partitions
        if not 1 <= count <= len(names) or len(names) % count:
            raise InputError(
                f"{place} has {len(names)} partitions, which cannot be divided among {count} of "
                "the pipeline: give a divisor"
            )
        if count > 1 and len(stages_of(plan)) > 1:
            raise InputError(
                f"{plan.name} has several stages, and history is backfilled into one partition "
                "only that has them all: give 1, and go on with ripple run"
            )
        if len(names) > 1:
            check_triggers(plan)
        return cls(until_ns, key, asyncio.run(_looked_at(place, plan, inputs, until_ns)), count)

    def inputs_of(self, partition: int) -> tuple[LiveInput, ...]:
        """Return the inputs that a partition of the pipeline reads."""
        return self.inputs[partition :: self.partitions]

    def notes_of(self, partition: int, backfill: str) -> dict[str, str]:
        """Return what the checkpoint of a partition must remember beside the state."""
        inputs = self.inputs_of(partition)
        identities = {one.name: one.identity for one in inputs}
        return notes_of(identities, {one.name: one.begins for one in inputs}, backfill)


async def _looked_at(
    place: str, plan: Plan, inputs: Inputs, until_ns: int
) -> tuple[LiveInput, ...]:
    look = _in_log if place.startswith(PREFIX) else _in_kafka
    try:
        return await look(place, plan, inputs, until_ns)
    finally:
        await inputs.close()


async def _in_log(place: str, plan: Plan, inputs: Inputs, until_ns: int) -> tuple[LiveInput, ...]:
    topic, only = open_topic(place)
    if topic.time_field is None:
        raise InputError(f"{place} has no time field to find the end of history by")
    numbers = range(topic.partitions) if only is None else (only,)
    ranges = [range_of(topic, one, Bound(time_ns=until_ns), NOWHERE) for one in numbers]
    firsts, ends = await inputs.bounds()
    cut = {name: begin for name, (begin, _) in zip(inputs.names, ranges, strict=True)}
    identities = await inputs.identities(cut)
    path = os.path.abspath(f"{LogPlace.parse(place).folder}/{topic.path}")
    found = []
    for name, number in zip(inputs.names, numbers, strict=True):
        first, begin = firsts[name], cut[name]
        first_ns = await _first_ns(plan, inputs, name, firsts, begin)
        found.append(
            LiveInput(name, path, number, first, begin, ends[name], identities[name], first_ns)
        )
    return tuple(found)


async def _in_kafka(place: str, plan: Plan, inputs: Inputs, until_ns: int) -> tuple[LiveInput, ...]:
    """Find the cut in a topic: from the offset that the broker has for the time, record by record.

    A record is written after its event, so nothing before that offset is at ``until_ns`` or later;
    the tasks that read it look whether that is so.
    """
    since: Cut = await inputs.since(max(until_ns // 1_000_000, 0))  # type: ignore[attr-defined]
    firsts, ends = await inputs.bounds()
    found = []
    for number, name in enumerate(inputs.names):
        first, begin, end = firsts[name], ends[name], ends[name]
        start = min(max(first, since[name]), end)
        async for batch in _batches(inputs, {**ends, name: start}, ends, BATCH_ROWS):
            at = _first_at(plan, batch, until_ns)
            if at is not None:
                begin = at
                break
        identity = await _identity(inputs, name, {**ends, name: first}, begin)
        one = place if len(inputs.names) == 1 else one_of(place, number)
        first_ns = await _first_ns(plan, inputs, name, firsts, begin)
        found.append(LiveInput(name, one, None, first, begin, end, identity, first_ns))
    return tuple(found)


def _first_at(plan: Plan, batch: Batch, until_ns: int) -> int | None:
    """Return the offset of the first record of a batch that is at ``until_ns`` or later."""
    times = batch.records.column(plan.source.time_field).cast(pa.int64())
    at = pc.index(pc.greater_equal(times, until_ns), True).as_py()
    return None if at < 0 else int(batch.offsets()[at])


async def _identity(inputs: Inputs, name: str, firsts: Cut, end: int) -> str:
    """Return what tells an input in Kafka up to an offset: it is known of what was just read."""
    start = {**firsts, name: max(firsts[name], end - _BACK_ROWS)}
    async for _ in _batches(inputs, start, {**firsts, name: end}, BATCH_ROWS):
        pass
    return (await inputs.identities({name: end}))[name]


async def _first_ns(plan: Plan, inputs: Inputs, name: str, firsts: Cut, end: int) -> int | None:
    """Return the latest event time among the first records of an input, before ``end``."""
    stop = {**firsts, name: min(end, firsts[name] + _FIRST_RECORDS)}
    latest: list[int] = []
    async for batch in _batches(inputs, firsts, stop, BATCH_ROWS):
        times = batch.records.column(plan.source.time_field).cast(pa.int64())
        found = pc.max(times).as_py()
        latest += [] if found is None else [found]
    return max(latest, default=None)


async def _batches(inputs: Inputs, cut: Cut, stop: Cut, rows: int) -> AsyncIterator[Batch]:
    """Yield the batches with records between two cuts."""
    at = dict(cut)
    await inputs.open(at, rows, stop)
    while at != stop:
        found = inputs.next(at)
        if found is Signal.ENDED:
            return
        if found is Signal.WAITING:
            await inputs.more()
            continue
        name, entry = found
        at[name] = entry.next_offset
        if isinstance(entry, Batch) and entry.records.num_rows:
            yield entry

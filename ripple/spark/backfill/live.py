"""The live input that continues history: an event log, or a topic of Kafka."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ripple.connectors.inputs import Signal, TimedInputs, keyed_by
from ripple.connectors.locate import open_inputs
from ripple.core.errors import InputError
from ripple.model.batch import Batch
from ripple.model.pipeline.topology import divided_why, stages_of
from ripple.spark.fold import check_triggers
from ripple.spark.kafka_shares import PREFIX as KAFKA
from ripple.spark.kafka_shares import one_of
from ripple.spark.log_table import open_topic, range_of
from ripple.spark.options import BATCH_ROWS, NOWHERE, Bound, absolute_topic
from ripple.spark.portions import Sources, check_apart
from ripple.spark.shares import Share, Source
from ripple.storage.log_uri import PREFIX
from ripple.task.arguments import sources_of
from ripple.task.restore import notes_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

    from ripple.connectors.inputs import Inputs
    from ripple.core.cut import Cut
    from ripple.model.pipeline.plan import Plan, SourceSpec

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


@dataclass(frozen=True, slots=True)
class LiveSource:
    """The live partitions of one source, by its name.

    key: the fields by whose murmur2 records are partitioned, () for a single partition.
    """

    name: str
    place: str
    key: tuple[str, ...]
    inputs: tuple[LiveInput, ...]

    @classmethod
    def at(cls, place: str, plan: Plan, source: SourceSpec, until_ns: int) -> LiveSource:
        """Examine ``log:DIR/TOPIC`` or ``kafka:BROKERS/TOPIC``.

        Raises InputError for an input that cannot continue history.
        """
        if source.time_field is None:
            raise InputError(f"{source.name} has no event time, so history has no end")
        if not isinstance(place, str) or not place.startswith((PREFIX, KAFKA)):
            raise InputError(
                f"a live input is a log or a topic, {PREFIX}DIR/TOPIC or {KAFKA}BROKERS/TOPIC, "
                f"not {place!r}"
            )
        inputs = open_inputs(place, plan, 1, follow=False, source=source)
        names = inputs.names
        key = keyed_by(inputs) if len(names) > 1 else ()
        why = divided_why(plan, key) if len(names) > 1 else None
        if len(names) > 1 and key == () and why is None:
            why = "its records are divided by nothing, so those of history have no partition"
        if key is None:
            why = "the key of its partitions is unknown: add it, as in ?key=symbol"
        if key is None or why is not None:
            raise InputError(f"{place} cannot continue history partition by partition: {why}")
        looked_at = asyncio.run(_looked_at(place, source, inputs, until_ns))
        return cls(source.name, place, key, looked_at)

    def shares(self) -> tuple[Share, ...]:
        """Return all of it in shares."""
        return tuple(one.share(at, one.first, one.end) for at, one in enumerate(self.inputs))


@dataclass(frozen=True, slots=True)
class Live:
    """The live partitions of all sources, each from its first record at or after ``until_ns``.

    partitions: those of the pipeline; input i of a source is read by partition i mod that.
    """

    until_ns: int
    sources: tuple[LiveSource, ...]
    partitions: int

    @classmethod
    def at(
        cls,
        given: str | Mapping[str, str],
        plan: Plan,
        until_ns: int,
        partitions: int | None = None,
    ) -> Live:
        """Examine the live inputs: of the one source, or of each by its name.

        Raises InputError for inputs that cannot continue history.
        """
        for node in plan.distincts:
            raise InputError(
                f"history of {plan.name} cannot be backfilled: {node.name} waits with rows of the "
                "log, and those of history are in none. Let it begin from the log, with ripple run"
            )
        for fold in plan.folds:
            if fold.expiry is not None:
                raise InputError(
                    f"history of {plan.name} cannot be backfilled: keys of {fold.name} end by "
                    "ttl=. Let it begin from the log, with ripple run"
                )
        places = sources_of(plan, given)
        sources = tuple(
            LiveSource.at(places[source.name], plan, source, until_ns) for source in plan.sources
        )
        whole = Sources(tuple(Source(s.name, s.place, s.shares(), s.key) for s in sources))
        if len(sources) > 1:
            check_apart(whole.each)
        most = whole.partitions
        count = most if partitions is None else partitions
        if not 1 <= count <= most or most % count:
            have = "the live inputs can be read in"
            if len(sources) == 1:
                have = f"{sources[0].place} has"
            raise InputError(
                f"{have} {most} partitions, which cannot be divided among {count} of the "
                "pipeline: give a divisor"
            )
        if count > 1 and len(stages_of(plan)) > 1:
            raise InputError(
                f"{plan.name} has several stages, and history is backfilled into one partition "
                "only that has them all: give 1, and continue with ripple run"
            )
        why = whole.together_why(plan) if count > 1 else None
        if why is not None:
            raise InputError(
                f"history of {plan.name} is backfilled into one partition only, since {why}: give "
                "1, and continue with ripple run"
            )
        if len(whole.shares) > 1:
            check_triggers(plan)
        return cls(until_ns, sources, count)

    @property
    def inputs(self) -> tuple[LiveInput, ...]:
        """The inputs of all, source by source; the number of one is its rank among them."""
        return tuple(one for source in self.sources for one in source.inputs)

    def source_of(self, name: str) -> tuple[LiveSource, int]:
        """Return a source, and the number of its first input."""
        first = 0
        for source in self.sources:
            if source.name == name:
                break
            first += len(source.inputs)
        return source, first

    def inputs_of(self, partition: int) -> tuple[LiveInput, ...]:
        """Return the inputs that a partition of the pipeline reads."""
        return self.inputs[partition :: self.partitions]

    def notes_of(self, partition: int, backfill: str) -> dict[str, str]:
        """Return the notes for a partition's checkpoint."""
        inputs = self.inputs_of(partition)
        identities = {one.name: one.identity for one in inputs}
        return notes_of(identities, {one.name: one.begins for one in inputs}, backfill)


async def _looked_at(
    place: str, source: SourceSpec, inputs: Inputs, until_ns: int
) -> tuple[LiveInput, ...]:
    look = _in_log if place.startswith(PREFIX) else _in_kafka
    try:
        return await look(place, source, inputs, until_ns)
    finally:
        await inputs.close()


async def _in_log(
    place: str, source: SourceSpec, inputs: Inputs, until_ns: int
) -> tuple[LiveInput, ...]:
    topic, only = open_topic(place)
    if topic.time_field is None:
        raise InputError(f"{place} has no time field to find the end of history by")
    numbers = range(topic.partitions) if only is None else (only,)
    until = Bound(time_ns=until_ns)
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
    # The record right before the cut identifies the topic: inputs report it after reading.
    back = {name: max(firsts[name], offset - _BACK_ROWS) for name, offset in cut.items()}
    async for _ in _batches(inputs, back, cut):
        pass
    count = len(inputs.names)
    places = [(place if count == 1 else one_of(place, one), None) for one in range(count)]
    return await _inputs_at(source, inputs, cut, places)


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

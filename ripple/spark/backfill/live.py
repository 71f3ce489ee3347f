"""The live log that goes on where history ends."""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ripple.batch import Batch
from ripple.connectors.locate import open_inputs
from ripple.errors import InputError
from ripple.log import PartitionReader
from ripple.log_place import PREFIX, LogPlace
from ripple.partition.restoring import notes_of
from ripple.pipeline.stages import divided_why, stages_of
from ripple.spark.fold import check_triggers
from ripple.spark.log_table import open_topic, range_of
from ripple.spark.options import NOWHERE, Bound

if TYPE_CHECKING:
    from ripple.log import Topic
    from ripple.pipeline.plan import Plan

# Of so many the first records of a log, not all will have come late.
_FIRST_RECORDS = 16


@dataclass(frozen=True, slots=True)
class LiveInput:
    """One partition of the log.

    first: the offset that it can be read from. begins: where what is live begins. end: where it
    ended when it was looked at. identity: what tells the log up to ``begins``. first_ns: the latest
    event time among its first records, None if there are none before ``begins``: what was removed
    before them is not later than that by more than records may be out of order.
    """

    name: str
    number: int
    first: int
    begins: int
    end: int
    identity: str
    first_ns: int | None


@dataclass(frozen=True, slots=True)
class Live:
    """A log, of which each partition is live from its first record at ``until_ns`` or later on.

    path: of its topic. key: by whose murmur2 records are in its partitions, () where there is but
    one. partitions: how many the pipeline has; input i is read by partition i mod that.
    """

    path: str
    until_ns: int
    key: tuple[str, ...]
    inputs: tuple[LiveInput, ...]
    partitions: int

    @classmethod
    def at(cls, place: str, plan: Plan, until_ns: int, partitions: int | None = None) -> Live:
        """Look at a log. Raises InputError for one that cannot be gone on from."""
        if plan.source.time_field is None:
            raise InputError(
                f"{plan.source.name} has no event time, by which history would end somewhere"
            )
        if not place.startswith(PREFIX):
            raise InputError(f"what goes on is a log, {PREFIX}DIR/TOPIC, not {place!r}")
        topic, only = open_topic(place)
        if topic.time_field is None:
            raise InputError(f"{place} has no time field to find the end of history by")
        numbers = range(topic.partitions) if only is None else (only,)
        key = topic.key if len(numbers) > 1 else ()
        why = divided_why(plan, key) if len(numbers) > 1 else None
        if why is not None:
            raise InputError(f"{place} cannot be gone on from, partition by partition: {why}")
        ranges = [range_of(topic, one, Bound(time_ns=until_ns), NOWHERE) for one in numbers]
        begins = [begin for begin, _ in ranges]
        inputs = asyncio.run(_inputs(place, plan, topic, numbers, begins))
        count = len(inputs) if partitions is None else partitions
        if not 1 <= count <= len(inputs) or len(inputs) % count:
            raise InputError(
                f"{place} has {len(inputs)} partitions, which cannot be divided among {count} of "
                "the pipeline: give a divisor"
            )
        if count > 1 and len(stages_of(plan)) > 1:
            raise InputError(
                f"{plan.name} has several stages, and history is backfilled into one partition "
                "only that has them all: give 1, and go on with ripple run"
            )
        if len(inputs) > 1:
            check_triggers(plan)
        path = os.path.abspath(f"{LogPlace.parse(place).folder}/{topic.path}")
        return cls(path, until_ns, key, inputs, count)

    def inputs_of(self, partition: int) -> tuple[LiveInput, ...]:
        """Return the inputs that a partition of the pipeline reads."""
        return self.inputs[partition :: self.partitions]

    def notes_of(self, partition: int, backfill: str) -> dict[str, str]:
        """Return what the checkpoint of a partition must remember beside the state."""
        inputs = self.inputs_of(partition)
        identities = {one.name: one.identity for one in inputs}
        return notes_of(identities, {one.name: one.begins for one in inputs}, backfill)


async def _inputs(
    place: str, plan: Plan, topic: Topic, numbers: range | tuple[int], begins: list[int]
) -> tuple[LiveInput, ...]:
    inputs = open_inputs(place, plan, 1, follow=False)
    try:
        firsts, ends = await inputs.bounds()
        identities = await inputs.identities(dict(zip(inputs.names, begins, strict=True)))
    finally:
        await inputs.close()
    return tuple(
        LiveInput(
            name,
            number,
            firsts[name],
            begin,
            ends[name],
            identities[name],
            _first_ns(topic, number, firsts[name], begin),
        )
        for name, number, begin in zip(inputs.names, numbers, begins, strict=True)
    )


def _first_ns(topic: Topic, partition: int, first: int, end: int) -> int | None:
    latest: list[int] = []
    with PartitionReader(topic, partition) as reader:
        for entry in reader.read(first, min(end, first + _FIRST_RECORDS)):
            if isinstance(entry, Batch) and entry.records.num_rows:
                found = pc.max(entry.records.column(topic.time_field).cast(pa.int64())).as_py()
                latest += [] if found is None else [found]
    return max(latest, default=None)

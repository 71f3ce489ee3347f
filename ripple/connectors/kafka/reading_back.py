"""Reads back from the topics which keys the readers of a partition's outputs have."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa

from ripple.connectors.kafka.cuts import committed
from ripple.core.errors import OutputError
from ripple.model.keys.partitioner import partition_numbers

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from ripple.connectors.kafka.group_partition import GroupPartition
    from ripple.connectors.kafka.topic_target import TopicTarget
    from ripple.world.broker import Broker, TopicPartition


class ReadingBack:
    """The records after a mark, in all its topics.

    A mark is no newer than the records after it: the ends are read when no transaction of this
    partition is under way.
    """

    def __init__(
        self,
        broker: Broker,
        partition: GroupPartition,
        outputs: Mapping[str, TopicTarget],
        where: str,
    ) -> None:
        """Look for nothing yet. where: the brokers, for people."""
        self._broker = broker
        self._partition = partition
        self._outputs = outputs
        self._where = where
        self._ends: dict[str, dict[TopicPartition, int]] = {}

    async def look_for_ends(self, places: Mapping[str, list[TopicPartition]]) -> None:
        """Learn where the outputs end now. places: of each topic. Raises BrokerError."""
        for output, written in self._outputs.items():
            self._ends[output] = await self._broker.ends(places[written.topic])

    def mark(self, output: str) -> str:
        """Return the position of an output when its end was looked up."""
        ends = self._ends[output]
        return json.dumps([self._outputs[output].topic, [end for _, end in sorted(ends.items())]])

    async def written_since(self, output: str, mark: str | None) -> AsyncIterator[pa.RecordBatch]:
        """Yield the keys of this partition's rows after a mark, with ``op``; see ReadableSink.

        If the output ``is_shared``, of all partitions.
        """
        written = self._outputs[output]
        places = sorted(self._ends[output])
        topic, starts = json.loads(mark) if mark else (written.topic, [])
        if topic != written.topic or len(starts) > len(places):
            raise OutputError(
                f"kafka:{self._where}/{written.topic} is another topic than the checkpoint speaks "
                f"of, {topic}: begin with another folder of checkpoints"
            )
        starts += [0] * (len(places) - len(starts))
        earliest = await self._broker.earliest(places)
        for place, start in zip(places, starts, strict=True):
            begin, end = max(start, earliest[place]), self._ends[output][place]
            async for read in committed(self._broker, place, begin, end):
                if len(read.records):
                    yield self._own(output, written.rows.back(read.records))

    def _own(self, output: str, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Leave out records of other partitions of the stage, if the key tells which they are."""
        number, of = self._partition.part
        if of == 1 or self._partition.is_shared(output):
            return rows
        numbers = partition_numbers(rows, self._partition.divided_by(output), of)
        return rows.filter(pa.array(numbers == number))

"""The lanes of a sender to the next stage, as outputs of its task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.connectors.commit_group import OutputStatus
from ripple.connectors.contract import Commit
from ripple.connectors.endings import failures
from ripple.task.lanes import lane_name
from ripple.task.repartition.lane import LaneWriter
from ripple.task.repartition.rows import Mark
from ripple.world.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping

    import pyarrow as pa

    from ripple.core.cut import Cut
    from ripple.engine.machine.partition import Partition
    from ripple.storage.log import Topic
    from ripple.world.ports import World

# What a receiver's checkpoints say is asked for so rarely: it is a look into the store.
LOOK_INTERVAL_NS = 5_000_000_000


class SentLanes:
    """The lanes of one sender: a Lanes of a repartition topic.

    Its task calls one method at a time. Invariant: between two calls no lane has more than the
    partition has committed.
    """

    commits_beside = False

    def __init__(
        self,
        topic: Callable[[], Topic],
        numbers: Mapping[int, int],
        world: World,
        needed: Callable[[int], Awaitable[Cut | None]],
    ) -> None:
        """Write to a topic's lanes.

        topic: opens it. numbers: the lane of each target of the partition. needed: from which cut
        on the receiver of a target may read again; None from the beginning.
        """
        self._open_topic = topic
        self._numbers = numbers
        self._world = world
        self._needed = needed
        self._writers: dict[int, LaneWriter] = {}
        self._given: list[tuple[LaneWriter, pa.RecordBatch, Mark]] = []
        self._looked_ns = world.clock.monotonic_ns()

    async def open(
        self,
        epoch: int | None,
        standings: Mapping[str, OutputStatus],
    ) -> Mapping[str, OutputStatus]:
        """Take all lanes over, and return the committed cut of each."""
        try:
            topic = await self._world.executor.run(self._open, epoch)
        except failures():
            await self.close()
            raise
        standings = {}
        for target, writer in self._writers.items():
            committed = None if writer.mark is None else Commit(writer.mark.cut, "")
            name = f"{topic.path}/{writer.lane}"
            standings[lane_name(target)] = OutputStatus(
                name, True, committed, None, takes_stored=True
            )
        return standings

    def _open(self, epoch: int | None) -> Topic:
        world, topic = self._world, self._open_topic()
        for target, number in self._numbers.items():
            self._writers[target] = LaneWriter(
                topic, number, world.clock, epoch=epoch, guards=world.guards
            )
        return topic

    def pass_by(self, partition: Partition, lanes: Collection[str]) -> None:
        """Take from a partition the rows that these lanes have already, unless they are empty."""
        targets = [target for target in self._chosen(lanes) if self._writers[target].mark]
        if targets and self._world.guards("lane_muted"):
            partition.outgoing_to(targets)

    def take(self, partition: Partition, lanes: Collection[str]) -> Mapping[str, Commit]:
        """Take new changes; none of them is committed with the outputs."""
        self._given = []
        for target, changes in partition.outgoing_to(self._chosen(lanes)).items():
            writer = self._writers[target]
            if writer.mark is None or dict(writer.mark.cut) != dict(changes.cut):
                mark = Mark(changes.since, changes.cut, changes.watermark_ns)
                self._given.append((writer, changes.rows, mark))
        return {}

    async def commit(self) -> None:
        """Append the changes taken, each lane in one piece, and sync."""
        given, self._given = self._given, []
        await self._world.executor.run(_add, given)
        await self._clean()

    async def close(self) -> None:
        """Release all lanes; if closing some fails, the first error is raised."""
        error: Exception | None = None
        for writer in self._writers.values():
            try:
                writer.close()
            except Exception as other:
                error = error or other
        self._writers.clear()
        if error is not None:
            raise error

    def _chosen(self, lanes: Collection[str]) -> list[int]:
        return [target for target in self._writers if lane_name(target) in lanes]

    async def _clean(self) -> None:
        """Remove rows that no receiver needs any more, now and then."""
        now_ns = self._world.clock.monotonic_ns()
        if now_ns - self._looked_ns < LOOK_INTERVAL_NS:
            return
        self._looked_ns = now_ns
        for target, writer in self._writers.items():
            if not writer.has_sealed:
                continue
            try:
                cut = await self._needed(target)
            except (StoreError, OSError):
                return  # another time
            if cut is not None:
                await self._world.executor.run(writer.release, cut)


def _add(given: list[tuple[LaneWriter, pa.RecordBatch, Mark]]) -> None:
    for writer, rows, mark in given:
        writer.add(rows, mark)

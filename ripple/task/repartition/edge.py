"""An edge through a log: both ends of its topic, on the world's disk or at a broker."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from ripple.connectors.connector import Carried
from ripple.core.cut import of_sender
from ripple.task.lanes import lane_name
from ripple.task.repartition.broker_reading import BrokerReading
from ripple.task.repartition.carried import CarriedLanes
from ripple.task.repartition.follows import FollowedLanes
from ripple.task.repartition.lanes import SentLanes
from ripple.task.repartition.reading import LogReading

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    import pyarrow as pa

    from ripple.connectors.commit_group import CommitGroup
    from ripple.connectors.connector import LaneHome
    from ripple.core.cut import Cut
    from ripple.task.edges import Upstream
    from ripple.task.lanes import Lanes
    from ripple.task.repartition.reading import LaneReading
    from ripple.task.repartition.topics import LaneTopic
    from ripple.world.ports import World


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneEdge:
    """The edge of a topic; its senders and receivers are numbers.

    home: where the topic is; None for the world's disk. resumes: asks for the cut from which a
    receiver may read again, None for the beginning. has_parts: whether such a cut has a part for
    each sender, and its lane is read by that part's offsets.
    """

    topic: LaneTopic
    world: World
    home: LaneHome | None
    resumes: Callable[[int], Awaitable[Cut | None]]
    has_parts: bool

    def carried(self, lanes: Mapping[int, int]) -> Carried | None:
        """Return the lanes that a commit group carries, by target; None for lanes on the disk."""
        if self.home is None:
            return None
        named = {lane_name(target): lane for target, lane in lanes.items()}
        place, topic = self.home.place(self.topic.topic), self.topic
        return Carried(place, topic.senders * topic.receivers, named)

    def sent(self, lanes: Mapping[int, int], outputs: CommitGroup) -> Lanes:
        """Return the lanes of a sender, by target. outputs: carry them, if there is a broker."""
        world, topic = self.world, self.topic
        if self.home is not None:
            return CarriedLanes(topic.schema, lanes, outputs, world.guards)

        async def needed(target: int) -> Cut | None:
            receiver, sender = divmod(lanes[target], topic.senders)
            return self._part(await self.resumes(receiver), sender)

        return SentLanes(partial(topic.open, world.disk), lanes, world, needed)

    def reading(self, receiver: int) -> LaneReading:
        """Return the reader of a receiver's lanes."""
        world, topic, lanes = self.world, self.topic, self.topic.lanes_to(receiver)
        if self.home is None:
            return LogReading(partial(topic.open, world.disk), lanes, world.executor)

        async def needed() -> dict[int, Cut]:
            cut = await self.resumes(receiver)
            parts = {lane: self._part(cut, sender) for sender, lane in enumerate(lanes)}
            return {lane: part for lane, part in parts.items() if part is not None}

        return BrokerReading(
            self.home.broker, topic, lanes, world.clock, needed=needed, executor=world.executor
        )

    @asynccontextmanager
    async def followed(
        self, schema: pa.Schema, receiver: int, wake: Callable[[], None]
    ) -> AsyncIterator[Upstream[Any]]:
        """Follow all senders of a receiver, whose rows are of a schema."""
        lanes = self.topic.lanes_to(receiver)
        followed = FollowedLanes(self.reading(receiver), lanes, schema, wake)
        try:
            yield followed
        finally:
            await followed.stop()

    def _part(self, cut: Cut | None, sender: int) -> Cut | None:
        return of_sender(cut, str(sender)) if cut is not None and self.has_parts else cut

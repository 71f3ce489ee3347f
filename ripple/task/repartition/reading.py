"""The lanes of one receiver, read by whole cuts: the common part of all places of lanes."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Protocol

from ripple.task.repartition.lane import LaneReader
from ripple.world.ports import INLINE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ripple.core.cut import Cut
    from ripple.storage.log import Topic
    from ripple.task.repartition.lane import Section
    from ripple.world.ports import Executor, Watch

Range = tuple["Cut | None", "Cut | None"]


class LaneReading(Protocol):
    """Lanes of a repartition topic, by their numbers there; one call at a time."""

    async def ranges(self) -> Mapping[int, Range]:
        """Return of each lane from which cut, and to which, one can read.

        None for the very beginning, and where nothing is there.
        """
        ...

    async def open(self, cuts: Mapping[int, Cut | None]) -> None:
        """Go to the last mark at or before a lane's cut; None is the very beginning.

        Raises InputError where that was removed.
        """
        ...

    def next(self, lane: int) -> Section | None:
        """Return the next whole cut of a lane, None while it is not there. Raises InputError."""
        ...

    async def more(self) -> None:
        """Wait until there may be more. Raises OSError where it cannot know any more."""
        ...

    def wake(self) -> None:
        """Let ``more`` return."""
        ...

    async def sync(self) -> None:
        """Make the records read durable, before a cut that includes them is stored."""
        ...

    async def close(self) -> None:
        """Release everything; closing twice is allowed."""
        ...


class LogReading:
    """Lanes in a topic of the embedded log."""

    def __init__(
        self, topic: Callable[[], Topic], lanes: Sequence[int], executor: Executor = INLINE
    ) -> None:
        """Read lanes of a topic, which is opened when it is first needed.

        executor: runs slow calls.
        """
        self._open_topic = topic
        self._lanes = list(lanes)
        self._executor = executor
        self._topic: Topic | None = None
        self._watch: Watch | None = None
        self._readers: dict[int, LaneReader] = {}

    async def ranges(self) -> Mapping[int, Range]:
        """Return of each lane from which cut, and to which, one can read."""
        return await self._executor.run(self._ranges)

    async def open(self, cuts: Mapping[int, Cut | None]) -> None:
        """Go to the last mark at or before a lane's cut, and watch the lanes from here on."""
        await self.close()
        await self._executor.run(self._open, cuts)
        topic = self._opened()
        self._watch = topic.disk.watch([topic.folder(lane) for lane in self._lanes])

    def next(self, lane: int) -> Section | None:
        """Return the next whole cut of a lane."""
        return self._readers[lane].next()

    async def more(self) -> None:
        """Wait until a sender has written."""
        assert self._watch is not None, "open() comes before"
        await self._watch.changed()
        for reader in self._readers.values():
            reader.look()

    def wake(self) -> None:
        """Let ``more`` return."""
        if self._watch is not None:
            self._watch.wake()

    async def sync(self) -> None:
        """Make the records read durable."""
        await self._executor.run(self._sync)

    async def close(self) -> None:
        """Release the files and the watch."""
        if self._watch is not None:
            self._watch.close()
        for reader in self._readers.values():
            reader.close()
        self._readers.clear()

    def _opened(self) -> Topic:
        self._topic = self._topic or self._open_topic()
        return self._topic

    def _ranges(self) -> dict[int, Range]:
        found: dict[int, Range] = {}
        for lane in self._lanes:
            with LaneReader(self._opened(), lane) as reader:
                found[lane] = reader.range()
        return found

    def _open(self, cuts: Mapping[int, Cut | None]) -> None:
        with ExitStack() as opened:
            for lane in self._lanes:
                reader = opened.enter_context(LaneReader(self._opened(), lane))
                reader.seek(cuts.get(lane))
                self._readers[lane] = reader
            opened.pop_all()

    def _sync(self) -> None:
        for reader in self._readers.values():
            reader.sync()

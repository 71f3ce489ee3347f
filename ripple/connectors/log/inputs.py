"""Partitions of a topic as the inputs of a task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.connectors.inputs import Signal, in_turn
from ripple.connectors.log.source import LogSource
from ripple.core.cut import is_within
from ripple.world.ports import INLINE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ripple.connectors.record_shape import RecordShape
    from ripple.core.cut import Cut
    from ripple.model.batch import Batch, Marker
    from ripple.storage.log.topic import Topic
    from ripple.world.ports import Executor, Watch


class LogInputs:
    """Partitions of one topic, by their names in the engine.

    With ``follow`` more may come at the end of the log, else it ends there. ``executor`` syncs,
    which blocks, so that the event loop stays free.

    The order of inputs follows from the cut: the input that is the fewest batches into its log, the
    first of equal ones. So a restarted task reads in the same order, as long as the logs have
    enough records.
    """

    def __init__(
        self,
        topic: Topic,
        partitions: Mapping[str, int],
        shape: RecordShape,
        batch_rows: int,
        *,
        follow: bool = False,
        executor: Executor = INLINE,
    ) -> None:
        self._topic = topic
        self._partitions = partitions
        self._shape = shape
        self._batch_rows = batch_rows
        self._follow = follow
        self._executor = executor
        self._stop: Cut | None = None
        self._watch: Watch | None = None
        self._rank = {name: rank for rank, name in enumerate(partitions)}
        self._sources: dict[str, LogSource] = {}
        self._entries: dict[str, Iterator[Batch | Marker | None]] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The inputs, in the order in which they were declared."""
        return tuple(self._partitions)

    @property
    def keyed_by(self) -> tuple[str, ...] | None:
        """The fields by which records are partitioned, () for none.

        None if it does not matter, since there is one partition.
        """
        return self._topic.key if len(self._partitions) > 1 else None

    async def bounds(self) -> tuple[Cut, Cut]:
        """Return the first cut that can be read from, and the present end."""
        first, end = {}, {}
        for name in self._partitions:
            first[name], end[name] = self._source(name).range()
        return first, end

    async def check(self, cut: Cut, identities: Mapping[str, str]) -> None:
        """Raise InputError unless the logs reach ``cut``, with the records read before it.

        identities: per input, the value of ``identities`` then; "" or absent if unknown.
        """
        for name, offset in cut.items():
            self._source(name).check_identity(offset, identities.get(name, ""))

    async def identities(self, cut: Cut) -> dict[str, str]:
        """Return per input a text that identifies the records before ``cut``."""
        return {name: self._source(name).identity_at(offset) for name, offset in cut.items()}

    async def open(self, cut: Cut, rows: int, stop: Cut | None = None) -> None:
        """Go to ``cut``; ``next`` reads from there, ``rows`` at a time, up to ``stop``.

        If it is there already it continues with its open readers.
        """
        self._stop = stop
        if self._follow and self._watch is None:
            folders = [self._topic.folder(partition) for partition in self._partitions.values()]
            self._watch = self._topic.disk.watch(folders)
        for name, offset in cut.items():
            end = stop[name] if stop is not None else None
            self._entries[name] = self._source(name).go_to(offset, rows, end)

    def next(self, cut: Cut) -> tuple[str, Batch | Marker] | Signal:
        """Return the batch after ``cut`` and its input, or the reason why there is none."""
        for name in in_turn(cut, self._batch_rows, self._rank):
            entry = next(self._entries[name])
            if entry is not None:
                return name, entry
        is_at_stop = self._stop is not None and is_within(self._stop, cut)
        return Signal.WAITING if self._follow and not is_at_stop else Signal.ENDED

    async def more(self) -> None:
        """Wait until one of the partitions has new records."""
        assert self._watch is not None, "open() comes before, and an unfollowed input ends"
        await self._watch.changed()
        for source in self._sources.values():
            source.look()

    def wake(self) -> None:
        """Let ``more`` return."""
        if self._watch is not None:
            self._watch.wake()

    async def sync(self) -> None:
        """Make the records read so far durable, before a cut that includes them is stored."""
        await self._executor.run(self._sync)

    async def close(self) -> None:
        """Release the files and the watch."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        for source in self._sources.values():
            source.close()

    def _sync(self) -> None:
        for source in self._sources.values():
            source.sync()

    def _source(self, name: str) -> LogSource:
        if name not in self._sources:
            self._sources[name] = LogSource(
                self._topic, self._partitions[name], name=name, shape=self._shape
            )
        return self._sources[name]


class EndingLog(LogInputs):
    """The same, up to the partitions' ends at its creation: it never waits."""

    never_waits = True

    def __init__(
        self, topic: Topic, partitions: Mapping[str, int], shape: RecordShape, batch_rows: int
    ) -> None:
        super().__init__(topic, partitions, shape, batch_rows)
        self._ends = {name: self._source(name).range()[1] for name in partitions}

    async def open(self, cut: Cut, rows: int, stop: Cut | None = None) -> None:
        """Go to ``cut``, to read up to those ends."""
        await super().open(cut, rows, self._ends if stop is None else stop)

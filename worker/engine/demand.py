"""The demand on a partition: how long its input and its next recovery have been growing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ripple.core.events import Committed, Restored, Stored

if TYPE_CHECKING:
    from ripple.core.cut import Cut
    from ripple.core.events import Event
    from ripple.task.lifecycle import PartitionTask
    from ripple.world.ports import Clock

SECOND = 1_000_000_000  # in nanoseconds


class PartitionDemand:
    """Since when an owned partition has been behind its input, and its checkpoint behind its cut.

    Both are times and no numbers of records: an input need not know its length, and an old record
    need not be late. Nothing is asked of inputs or stores.
    """

    def __init__(self, clock: Clock) -> None:
        """Measure by the clock of the process."""
        self._clock = clock
        self._ends = 0  # of input that its task has come to, at the last look
        self._end_ns: int | None = None  # when it was last at the end of its input
        self._debt_ns: int | None = None  # since when its checkpoint is older than its cut
        self._stored: Cut = {}
        self._committed: Cut = {}

    def on_event(self, event: Event) -> None:
        """Take an event of the task."""
        match event:
            case Restored():
                self._end_ns = self._clock.monotonic_ns()
                self._stored, self._committed, self._debt_ns = event.start, event.cut, None
            case Committed():
                self._committed = event.cut
            case Stored():
                self._stored, self._debt_ns = event.cut, None
            case _:
                return
        if self._stored == self._committed:
            self._debt_ns = None
        elif self._debt_ns is None:
            self._debt_ns = self._clock.monotonic_ns()

    def backlog_s(self, task: PartitionTask[Any]) -> float:
        """Return the seconds since its task was at the end of its input; 0 if it was by now."""
        now_ns = self._clock.monotonic_ns()
        if task.is_at_end or task.ends != self._ends or self._end_ns is None:
            self._ends, self._end_ns = task.ends, now_ns
        return (now_ns - self._end_ns) / SECOND

    @property
    def debt_s(self) -> float:
        """The seconds since which committed records have been in no checkpoint."""
        if self._debt_ns is None:
            return 0.0
        return (self._clock.monotonic_ns() - self._debt_ns) / SECOND

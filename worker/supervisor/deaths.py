"""Unexpected ends of a worker's processes: the report about them, and when the worker gives up."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ripple.world.ports import Clock

REPORT_S, REPORT_MIN = 300, 3  # so many within so long are reported
VAIN_S, VAIN = 600, 20  # so many, and the worker gives its partitions away
# One that reports that it cannot work will not recover soon: a file may be half written for a
# moment.
UNABLE_S, UNABLE = 10, 3
NS = 1_000_000_000


class _Death(NamedTuple):
    at_ns: int
    process: int
    how: str
    is_unable: bool


class Deaths:
    """Process failures within the last ten minutes, in order."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._deaths: deque[_Death] = deque(maxlen=4 * VAIN)

    def died(self, process: int, how: str, *, is_unable: bool) -> None:
        """Record that a process has ended."""
        self._deaths.append(_Death(self._clock.monotonic_ns(), process, how, is_unable))

    @property
    def report(self) -> str:
        """A report for people, "" if there are none or few."""
        recent = self._within(REPORT_S)
        unable = any(one.is_unable for one in recent)
        if len(recent) < REPORT_MIN and not unable:
            return ""
        last = recent[-1]
        often = f"{len(recent)} times in {REPORT_S // 60} minutes"
        memory = ": is there memory enough?" if last.how == "by SIGKILL" else ""
        return f"its processes have ended {often}, the last one, {last.process}, {last.how}{memory}"

    @property
    def too_many(self) -> str:
        """Why the partitions should move to other workers, "" if they should not."""
        dead = self._within(VAIN_S)
        for process in sorted({one.process for one in dead}):
            own = [one for one in dead if one.process == process]
            row = own[-UNABLE:]
            is_unable = len(row) == UNABLE and all(one.is_unable for one in row)
            if is_unable and row[-1].at_ns - own[0].at_ns >= UNABLE_S * NS:
                return f"process {process} cannot work: {row[-1].how}"
            if len(own) >= VAIN:
                return f"process {process} has ended {len(own)} times, {own[-1].how}"
        return ""

    def _within(self, seconds: int) -> list[_Death]:
        since_ns = self._clock.monotonic_ns() - seconds * NS
        return [one for one in self._deaths if one.at_ns >= since_ns]

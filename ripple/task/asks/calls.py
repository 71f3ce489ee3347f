"""The schedule of an ask's calls, timeouts and retries: a function of the given times."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ripple.engine.operators.answer_rows import Identity

PAUSE_S, PAUSE_S_MAX = 1.0, 30.0
LEAST_NS = 100_000_000
"""The least wait of a run for a call before its timeout counts; a shorter timeout counts itself."""
_NS = 1_000_000_000


@dataclass(eq=False)
class Call:
    """The calls for one row: the row, the number of calls, and the end of the present one.

    given: makes the function's argument. asked: returns the row for a dead letter. ends_ns: by the
    clock. waits_ns: by the time that the run has waited; a call makes little progress while the run
    computes.
    """

    row: Identity
    given: Callable[[], Any]
    asked: Callable[[], bytes | None]
    made: int = 0
    ends_ns: int = 0
    waits_ns: int = 0

    def left_ns(self, now_ns: int, waited_ns: int) -> int:
        """Return the longest remaining wait for it; at 0 it is overdue."""
        return max(0, self.ends_ns - now_ns, self.waits_ns - waited_ns)


class Calls:
    """Decides on the calls of one ask. No clock, no chance, no I/O.

    Invariants: at most ``concurrency`` calls are in progress. A row is waiting, in progress or
    paused, until its call is answered or has failed for good. Rows are called in the order in which
    they came, those paused first, once their pause is over.
    """

    def __init__(
        self, concurrency: int, timeout_ns: int, retries: int, jittered: Callable[[float], float]
    ) -> None:
        """jittered: returns a pause, in seconds, spread, so that not all return together."""
        self._concurrency, self._timeout_ns, self._retries = concurrency, timeout_ns, retries
        self._jittered = jittered
        self._waiting: deque[Call] = deque()
        self._in_progress: dict[Call, None] = {}  # in the order in which they began
        self._paused: list[tuple[int, int, Call]] = []
        self._pauses = 0

    def __len__(self) -> int:
        return len(self._waiting) + len(self._in_progress) + len(self._paused)

    def add(self, calls: Iterable[Call]) -> None:
        """Let rows wait for their calls."""
        self._waiting.extend(calls)

    def due(self, now_ns: int, waited_ns: int = 0) -> list[Call]:
        """Return the calls to make now; they are in progress from here on."""
        due: list[Call] = []
        while len(self._in_progress) < self._concurrency:
            if self._paused and self._paused[0][0] <= now_ns:
                call = heappop(self._paused)[2]
            elif self._waiting:
                call = self._waiting.popleft()
            else:
                break
            call.made += 1
            call.ends_ns = now_ns + self._timeout_ns
            call.waits_ns = waited_ns + min(self._timeout_ns, LEAST_NS)
            self._in_progress[call] = None
            due.append(call)
        return due

    def overdue(self, now_ns: int, waited_ns: int) -> list[Call]:
        """Return the calls in progress after their timeout; the caller cancels them, as failed."""
        return [one for one in self._in_progress if not one.left_ns(now_ns, waited_ns)]

    def owed(self, now_ns: int, waited_ns: int) -> bool:
        """Return whether a call is past its timeout, before the run has waited enough for it."""
        return any(one.ends_ns <= now_ns and waited_ns < one.waits_ns for one in self._in_progress)

    def answered(self, call: Call) -> None:
        """Take notice that a call in progress is over."""
        del self._in_progress[call]

    def failed(self, call: Call, now_ns: int) -> bool:
        """Take notice that a call in progress has failed; return whether for good."""
        del self._in_progress[call]
        if call.made > self._retries:
            return True
        # Doubled at most as often as it takes to reach the longest.
        pause_s = min(PAUSE_S * 2 ** min(call.made - 1, 10), PAUSE_S_MAX)
        self._pauses += 1
        at_ns = now_ns + int(self._jittered(pause_s) * _NS)
        heappush(self._paused, (at_ns, self._pauses, call))
        return False

    def next_in_ns(self, now_ns: int, waited_ns: int) -> int | None:
        """Return the wait until the next decision, unless a call ends; None for never."""
        left_ns = [one.left_ns(now_ns, waited_ns) for one in self._in_progress]
        if self._paused and len(self._in_progress) < self._concurrency:
            left_ns.append(max(0, self._paused[0][0] - now_ns))
        return min(left_ns, default=None)

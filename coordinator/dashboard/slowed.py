"""For how much of the last minute each worker took in less, by its reported backpressure."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from ripple.control.assignment import Level

if TYPE_CHECKING:
    from ripple.control.assignment import Backpressure

SPAN_NS = 60_000_000_000


class Slowed:
    """The levels that workers had at the ticks of the last minute, and the shares of time."""

    def __init__(self) -> None:
        self._seen: dict[str, deque[tuple[int, bool]]] = {}

    def share(self, worker: str, now: Backpressure | None, now_ns: int) -> float | None:
        """Note the present level; return the share of the seen time, 0 to 1, None if unknown."""
        seen = self._seen.setdefault(worker, deque())
        if now is not None:
            seen.append((now_ns, now.level >= Level.SLOW))
        for old in [name for name, them in self._seen.items() if _is_old(them, now_ns)]:
            del self._seen[old]
        while seen and seen[0][0] < now_ns - SPAN_NS:
            seen.popleft()
        return sum(is_slow for _, is_slow in seen) / len(seen) if seen else None


def _is_old(seen: deque[tuple[int, bool]], now_ns: int) -> bool:
    return bool(seen) and seen[-1][0] < now_ns - SPAN_NS

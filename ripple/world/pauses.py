"""How long to wait before a retry, after an end or a failure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ripple.world.ports import Random

# Half a minute in all, as a server restarts.
DELAYS_S = (0.1, 0.3, 1.0, 2.0, 4.0, 8.0, 15.0)
# For a moment: whoever asked may ask again.
BRIEF_DELAYS_S = DELAYS_S[:3]
_NS = 1_000_000_000
_PARTS = 1_000_000


def doubling(least_s: float, most_s: float) -> Iterator[float]:
    """Yield pauses without end, each twice as long as the one before, up to the longest."""
    pause_s = least_s
    while True:
        yield pause_s
        pause_s = min(2 * pause_s, most_s)


def jittered(pause_s: float, random: Random) -> float:
    """Return between half and all of a pause: many that failed together do not return together."""
    return pause_s * (0.5 + random.below(_PARTS) / (2 * _PARTS))


class Pauses:
    """Exponential back-off, reset once an attempt has worked for a while.

    Hopeless attempts become ever rarer, and work that went well for a while is retried at once,
    however often it ends. The calls are, for each try: ``begin``, ``works`` once it does, if it
    ever does, and ``next_s`` when it has ended.
    """

    def __init__(
        self, monotonic_ns: Callable[[], int], least_s: float, most_s: float, *, steady_s: float
    ) -> None:
        """steady_s: after working for longer than this, the next pause is the shortest one."""
        self._monotonic_ns = monotonic_ns
        self._bounds_s = least_s, most_s
        self._steady_ns = int(steady_s * _NS)
        self._pauses_s = doubling(least_s, most_s)
        self._works_ns: int | None = None

    def begin(self) -> None:
        """Note that it is tried."""
        self._works_ns = None

    def works(self) -> None:
        """Note that it works, since the first time that this is said in a try."""
        if self._works_ns is None:
            self._works_ns = self._monotonic_ns()

    def next_s(self) -> float:
        """Return how long to wait now."""
        since_ns = self._works_ns
        if since_ns is not None and self._monotonic_ns() - since_ns > self._steady_ns:
            self._pauses_s = doubling(*self._bounds_s)
        return next(self._pauses_s)

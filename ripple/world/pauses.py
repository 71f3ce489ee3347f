"""How long to wait before something that has ended is begun again."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_NS = 1_000_000_000


class Pauses:
    """Exponential back-off, reset once an attempt has worked for a while.

    Hopeless attempts become ever rarer, and one that has worked is retried at once, however often
    it ends. The calls are, for each try: ``begin``, ``works`` once it does, if it ever does, and
    ``next_s`` when it has ended.
    """

    def __init__(
        self, monotonic_ns: Callable[[], int], least_s: float, most_s: float, *, steady_s: float
    ) -> None:
        """steady_s: after working for longer than this, the next pause is the shortest one."""
        self._monotonic_ns = monotonic_ns
        self._least_s, self._most_s = least_s, most_s
        self._steady_ns = int(steady_s * _NS)
        self._next_s = least_s
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
            self._next_s = self._least_s
        pause_s, self._next_s = self._next_s, min(2 * self._next_s, self._most_s)
        return pause_s

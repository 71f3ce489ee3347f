"""A progress line on standard error, for people: only when it is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable

INTERVAL_S = 0.2
_WIDTH = 24


class Progress:
    """Shows events done, rate, and a bar when the total is known."""

    def __init__(self, clock: Callable[[], float], total: int | None = None) -> None:
        """Make a line that ``clock`` (seconds) times; it stays silent without a terminal."""
        self._clock = clock
        self._total = total
        self._shown = sys.stderr.isatty()
        self._started = self._last = clock()

    def update(self, events: int) -> None:
        """Redraw the line if it is time to."""
        if not self._shown:
            return
        now = self._clock()
        if now - self._last < INTERVAL_S:
            return
        self._last = now
        rate = events / (now - self._started)
        print(
            f"\r{self._bar(events)}{events:,} events  {rate:,.0f}/s\033[K", end="", file=sys.stderr
        )

    def clear(self) -> None:
        """Remove the line."""
        if self._shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)

    def _bar(self, events: int) -> str:
        if not self._total:
            return ""
        filled = min(_WIDTH, events * _WIDTH // self._total)
        return f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {events * 100 // self._total}%  "

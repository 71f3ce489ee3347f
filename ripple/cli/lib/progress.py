"""A progress line on standard error, on terminals only."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from ripple.cli.lib.exits import say_inline

if TYPE_CHECKING:
    from ripple.connectors.inputs import Inputs

INTERVAL_S = 0.2
_WIDTH = 24
_ERASE = "\r\033[K"


class Progress:
    """Shows the number and rate of events, and a bar if the source knows its size."""

    def __init__(self, source: Inputs | None, *, quiet: bool = False) -> None:
        self._source = source
        self._shown = not quiet and sys.stderr.isatty()
        self._started_s = self._last_s = time.perf_counter()

    def update(self, events: int, waiting: int = 0) -> None:
        """Redraw the line if it is due. waiting: the rows that wait for answers."""
        if not self._shown:
            return
        now_s = time.perf_counter()
        if now_s - self._last_s < INTERVAL_S:
            return
        self._last_s = now_s
        rate = events / (now_s - self._started_s)
        rows = f"  {waiting:,} wait for answers" if waiting else ""
        say_inline(f"{_ERASE}{self._bar()}{events:,} events  {rate:,.0f}/s{rows}")

    def clear(self) -> None:
        """Remove the line."""
        if self._shown:
            say_inline(_ERASE)

    def _bar(self) -> str:
        fraction: float | None = getattr(self._source, "fraction_read", None)
        if fraction is None:
            return ""
        filled = int(fraction * _WIDTH)
        return f"[{'#' * filled}{'.' * (_WIDTH - filled)}] {fraction:4.0%}  "

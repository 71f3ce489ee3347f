"""The newest warnings and errors of a log, to be sent with heartbeats.

A heartbeat has the lines of the last seconds, so that a lost one loses none; the receiver knows the
lines that it has already by their number and time.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from ripple.control.assignment import LINES_MAX, Line

if TYPE_CHECKING:
    from collections.abc import Callable

RECENT_MS = 5_000
TEXT_LENGTH_MAX = 500


class RecentLines:
    """The lines of one process."""

    def __init__(self, process: str, now_ns: Callable[[], int]) -> None:
        """Begin without lines. now_ns: the wall clock."""
        self._process = process
        self._now_ns = now_ns
        self._number = 0
        self._lines: deque[Line] = deque(maxlen=LINES_MAX)

    def note(self, level: str, text: str) -> None:
        """Note a line."""
        now_ms = self._now_ns() // 1_000_000
        self._lines.append(Line(now_ms, self._number, level, self._process, shortened(text)))
        self._number += 1

    def recent(self) -> tuple[Line, ...]:
        """Return the lines of the last seconds, oldest first."""
        since_ms = self._now_ns() // 1_000_000 - RECENT_MS
        return tuple(line for line in self._lines if line.time_ms >= since_ms)


def shortened(text: str) -> str:
    """Return a text of at most TEXT_LENGTH_MAX characters: the end of a longer one says more."""
    if len(text) <= TEXT_LENGTH_MAX:
        return text
    half = TEXT_LENGTH_MAX // 2
    return f"{text[:half]} … {text[3 - half :]}"

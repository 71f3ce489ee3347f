"""Recent log lines of a coordinator, for the dashboard."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ripple.world.ports import Clock

KEPT = 200


class Timeline:
    """Recent log lines with times, always recorded: nothing else keeps them for a later viewer."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._said: deque[tuple[int, str]] = deque(maxlen=KEPT)

    def note(self, line: str) -> None:
        """Record a line."""
        self._said.append((self._clock.now_ns() // 1_000_000, line))

    @property
    def entries(self) -> list[dict[str, Any]]:
        """The entries, newest first."""
        return [{"time_ms": ms, "what": line} for ms, line in reversed(self._said)]

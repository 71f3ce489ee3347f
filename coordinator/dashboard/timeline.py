"""What a coordinator has said lately, for the dashboard."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ripple.world.ports import Clock

KEPT = 200


class Timeline:
    """What the coordinator has said lately, with times: kept always, since nobody can ask later."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._said: deque[tuple[int, str]] = deque(maxlen=KEPT)

    def note(self, line: str) -> None:
        """Take a line."""
        self._said.append((self._clock.now_ns() // 1_000_000, line))

    @property
    def entries(self) -> list[dict[str, Any]]:
        """The newest first."""
        return [{"time_ms": ms, "what": line} for ms, line in reversed(self._said)]

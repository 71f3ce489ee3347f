"""Signals that ask a process to end: a second one is told from the same one sent twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable

ONE_CAUSE_S = 0.2
"""``timeout`` signals a process, and then its whole group; nobody presses Ctrl+C twice so fast."""


class Causes:
    """The signals that a process got. now_s: the time, in seconds."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._first: tuple[signal.Signals, float] | None = None

    def is_new(self, number: signal.Signals) -> bool:
        """Return whether a signal has another cause than the first one."""
        now_s = self._now_s()
        if self._first is None:
            self._first = number, now_s
            return True
        first, at_s = self._first
        return number != first or now_s - at_s >= ONE_CAUSE_S

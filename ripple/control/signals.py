"""Signals to end a process, debounced: the same one twice at once is one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import signal
    from collections.abc import Callable

DEBOUNCE_S = 0.2
"""``timeout`` signals a process, and then its whole group; two presses of Ctrl+C are slower."""


class Debounce:
    """Debounces the signals of a process. now_s: the time, in seconds."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._first: tuple[signal.Signals, float] | None = None

    def is_new(self, number: signal.Signals) -> bool:
        """Return whether a signal is more than the echo of the first one."""
        now_s = self._now_s()
        if self._first is None:
            self._first = number, now_s
            return True
        first, at_s = self._first
        return number != first or now_s - at_s >= DEBOUNCE_S

"""A coroutine whose turns of the event loop are timed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from ripple.world.ports import Clock


class TimedTurns:
    """An awaitable around another one, and itself the iterator that an event loop drives."""

    def __init__(self, of: Awaitable[Any], clock: Clock, took: Callable[[int], None]) -> None:
        """took: is called with the length of each turn, in nanoseconds."""
        self._turns: Generator[Any, Any, Any] = of.__await__()
        self._clock, self._took = clock, took

    def __await__(self) -> Generator[Any, Any, Any]:
        """Return what ``await`` drives."""
        return self

    def __iter__(self) -> TimedTurns:
        """Return itself."""
        return self

    def __next__(self) -> Any:
        """Do the next turn."""
        return self.send(None)

    def send(self, given: Any) -> Any:
        """Do the next turn, given what was awaited."""
        return self._timed(self._turns.send, given)

    def throw(self, *error: Any) -> Any:
        """Do the next turn with an error, as of a cancellation."""
        return self._timed(self._turns.throw, *error)

    def close(self) -> None:
        """Let no turn follow."""
        self._turns.close()

    def _timed(self, turn: Callable[..., Any], *given: Any) -> Any:
        began_ns = self._clock.monotonic_ns()
        try:
            return turn(*given)
        finally:
            self._took(self._clock.monotonic_ns() - began_ns)

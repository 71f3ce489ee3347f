"""Cleanup at the end of a run, successful or not."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType


class Endings:
    """Calls all added functions, the last first; the run's own error takes precedence.

    Later errors become notes of it. A cancellation meanwhile takes effect after all calls.
    """

    def __init__(self) -> None:
        self._ends: list[Callable[[], Awaitable[None] | None]] = []

    def add(self, end: Callable[[], Awaitable[None] | None]) -> None:
        """Call ``end`` at the end."""
        self._ends.append(end)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        first = error
        while self._ends:
            try:
                waiting = self._ends.pop()()
                if waiting is not None:
                    await waiting
            except failures() as other:
                if first is None:
                    first = other
                else:
                    first.add_note(f"and then: {other}")
        if first is not None and first is not error:
            raise first


def failures() -> tuple[type[BaseException], ...]:
    """Return the errors of a step, of which a wait that is cancelled is no Exception.

    That is a matter of asyncio alone, which plain runs never import: it is slow to.
    """
    asyncio = sys.modules.get("asyncio")
    return (Exception,) if asyncio is None else (Exception, asyncio.CancelledError)

"""One source that keeps its reader waiting, as the input of a life that must not wait with it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from ripple.connectors.inputs import Signal
from ripple.connectors.source_inputs import SourceInputs

if TYPE_CHECKING:
    from ripple.batch import Batch, Marker
    from ripple.connectors.contract import MarkedSource


class ThreadedInputs(SourceInputs):
    """Reads one entry ahead in a thread, so that the loop goes on: pipes, standard input.

    The next one is asked for once that has come: the thread is never in the source twice.
    """

    def __init__(self, source: MarkedSource, *, name: str | None = None) -> None:
        super().__init__(source, name=name)
        self._ahead: asyncio.Future[Batch | Marker | Signal] | None = None
        self._woken = asyncio.Event()

    def _take(self) -> Batch | Marker | Signal:
        ahead = self._ahead or self._read_ahead()
        if not ahead.done():
            return Signal.WAITING
        entry = ahead.result()
        if entry is not Signal.ENDED:
            self._read_ahead()
        return entry

    def _read_ahead(self) -> asyncio.Future[Batch | Marker | Signal]:
        entries, loop = self._entries, asyncio.get_running_loop()
        self._ahead = loop.run_in_executor(None, lambda: next(entries, Signal.ENDED))
        self._ahead.add_done_callback(lambda _: self._woken.set())
        return self._ahead

    async def more(self) -> None:
        """Wait for the thread."""
        await self._woken.wait()
        self._woken.clear()

    def wake(self) -> None:
        """Let ``more`` return."""
        self._woken.set()

    async def close(self) -> None:
        """Close the source, which ends the thread's waiting."""
        self._source.close()
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            with suppress(Exception):  # of what nobody asked for any more
                await ahead
            self._source.close()

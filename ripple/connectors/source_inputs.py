"""One source as the input of a life."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

from ripple.batch import Batch
from ripple.connectors.inputs import Signal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ripple.batch import Marker
    from ripple.connectors.contract import MarkedSource
    from ripple.cut import Cut


class SourceInputs:
    """Reads what can be iterated over: files, tables, streams.

    A source that ``waits``, such as a pipe, is read one entry ahead in a thread, so that the loop
    goes on; others are read where they are asked. The batches are those of the source: how long
    they are was said when it was made. It cannot tell whether it still is what it was.
    """

    def __init__(self, source: MarkedSource, *, waits: bool = False) -> None:
        self._source = source
        self._waits = waits
        self._entries: Iterator[Batch | Marker] = iter(())
        self._stop: int | None = None
        self._ahead: asyncio.Future[Batch | Marker | None] | None = None
        self._woken = asyncio.Event()

    @property
    def names(self) -> tuple[str, ...]:
        """The source's name."""
        return (self._source.name,)

    async def bounds(self) -> tuple[Cut, Cut]:
        """Return its beginning; nobody knows its end."""
        return {self._source.name: 0}, {}

    async def check(self, cut: Cut, identities: Mapping[str, str]) -> None:
        """Take it that this is what was read."""

    async def identities(self, cut: Cut) -> dict[str, str]:
        """Return no identity."""
        return dict.fromkeys(cut, "")

    async def open(self, cut: Cut, _rows: int, stop: Cut | None = None) -> None:
        """Go to ``cut``."""
        self._entries = iter(self._source.batches(cut[self._source.name]))
        self._stop = None if stop is None else stop[self._source.name]

    def next(self, cut: Cut) -> tuple[str, Batch | Marker] | Signal:
        """Return what comes next; raises as the source does."""
        name = self._source.name
        if self._stop is not None and cut[name] >= self._stop:
            return Signal.ENDED
        if not self._waits:
            entry = next(self._entries, None)
        else:
            ahead = self._ahead or self._read_ahead()
            if not ahead.done():
                return Signal.WAITING
            entry = ahead.result()
            if entry is not None:
                self._read_ahead()
        if entry is None:
            return Signal.ENDED
        return name, self._until_stop(entry)

    async def more(self) -> None:
        """Wait for the thread."""
        await self._woken.wait()
        self._woken.clear()

    def wake(self) -> None:
        """Let ``more`` return."""
        self._woken.set()

    async def sync(self) -> None:
        """Do nothing: a file is somebody else's."""

    async def close(self) -> None:
        """Close the source, which ends the thread's waiting."""
        self._source.close()
        ahead, self._ahead = self._ahead, None
        if ahead is not None:
            with suppress(Exception):  # of what nobody asked for any more
                await ahead
            self._source.close()

    def _read_ahead(self) -> asyncio.Future[Batch | Marker | None]:
        entries, loop = self._entries, asyncio.get_running_loop()
        self._ahead = loop.run_in_executor(None, lambda: next(entries, None))
        self._ahead.add_done_callback(lambda _: self._woken.set())
        return self._ahead

    def _until_stop(self, entry: Batch | Marker) -> Batch | Marker:
        if self._stop is None or not isinstance(entry, Batch) or entry.next_offset <= self._stop:
            return entry
        if entry.first_offset >= self._stop:  # behind a hole in which the stop is
            return Batch(entry.records.slice(0, 0), self._stop, (), entry.offsets()[:0])
        return entry.split_at(self._stop)[0]

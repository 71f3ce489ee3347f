"""An iterator of the program as inputs that wait in an event loop, so that others continue."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from typing import TYPE_CHECKING

from ripple.connectors.inputs import Signal
from ripple.connectors.reading_ahead import ReadAhead

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ripple.connectors.memory import IteratorSource
    from ripple.core.cut import Cut
    from ripple.model.batch import Batch

BATCHES_AHEAD = 2


class LiveInputs(ReadAhead):
    """The batches of an iterator, made in a thread; see Inputs.

    Invariants: ``_batches`` are read and not handed out. The source is closed while no thread is
    in it, which ``_in_source`` says.
    """

    def __init__(self, source: IteratorSource, name: str) -> None:
        """Take the source; nothing is read yet."""
        super().__init__()
        self.name = name
        self._source = source
        self._batches: deque[Batch] = deque()
        self._has_ended = False
        self._in_source = threading.Lock()

    @property
    def names(self) -> tuple[str, ...]:
        """The only input."""
        return (self.name,)

    async def bounds(self) -> tuple[Cut, Cut]:
        """Return its beginning; its end is unknown."""
        return {self.name: 0}, {}

    async def check(self, cut: Cut, identities: Mapping[str, str]) -> None:
        """Accept: an iterator is read once."""

    async def identities(self, cut: Cut) -> dict[str, str]:
        """Return no identity."""
        return dict.fromkeys(cut, "")

    async def open(self, cut: Cut, _rows: int, _stop: Cut | None = None) -> None:
        """Begin to read; the source has the size of batches, and a one-shot run no stop."""
        batches = self._source.batches(cut[self.name])
        self.reading.start(lambda: self._read(batches))

    def next(self, _cut: Cut) -> tuple[str, Batch] | Signal:
        """Return the next batch; raises as the source does, after all batches before."""
        if self._batches:
            batch = self._batches.popleft()
            self.reading.took()
            return self.name, batch
        if self._has_ended:
            return Signal.ENDED
        self.reading.check()
        return Signal.WAITING

    async def close(self) -> None:
        """Let the iterator end with its next row."""
        self._source.end()
        await self.reading.stop()
        with self._in_source:
            self._source.close()

    async def _read(self, batches: Iterator[Batch]) -> None:
        while (batch := await asyncio.to_thread(self._step, batches)) is not None:
            self._batches.append(batch)
            self.wake()
            while len(self._batches) >= BATCHES_AHEAD:
                await self.reading.room()
        self._has_ended = True
        self.wake()

    def _step(self, batches: Iterator[Batch]) -> Batch | None:
        with self._in_source:
            return next(batches, None)

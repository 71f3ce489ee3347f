"""A stream as the inputs of a run."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ripple.connectors.cutting import joined
from ripple.connectors.inputs import Signal
from ripple.connectors.row_items import of_rows
from ripple.connectors.validation import screened

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.connectors.record_shape import RecordShape
    from ripple.connectors.stream_buffer import Pushed
    from ripple.connectors.stream_channel import StreamChannel
    from ripple.core.cut import Cut
    from ripple.model.batch import Batch


class StreamInputs:
    """A stream as the inputs of a run. See Inputs."""

    def __init__(self, channel: StreamChannel, name: str, shape: RecordShape) -> None:
        self.name = name
        self._channel = channel
        self._shape = shape
        self._rows = 1
        self._stop: int | None = None
        self._more = asyncio.Event()

    @property
    def names(self) -> tuple[str, ...]:
        """The only input."""
        return (self.name,)

    async def bounds(self) -> tuple[Cut, Cut]:
        """Return the beginning; there is no end."""
        return {self.name: 0}, {}

    async def check(self, cut: Cut, identities: Mapping[str, str]) -> None:
        """Accept: the program chooses the rows after ``cut``."""

    async def identities(self, cut: Cut) -> dict[str, str]:
        """Return no identity."""
        return dict.fromkeys(cut, "")

    async def open(self, cut: Cut, rows: int, stop: Cut | None = None) -> None:
        """Go to ``cut``: at first any, then the reached one."""
        self._rows = rows
        self._stop = None if stop is None else stop[self.name]
        self._more = more = asyncio.Event()
        loop = asyncio.get_running_loop()
        self._channel.begin(self, cut[self.name], lambda: loop.call_soon_threadsafe(more.set))

    def next(self, cut: Cut) -> tuple[str, Batch] | Signal:
        """Return the pushed rows, up to the end of a batch; see Inputs."""
        at = cut[self.name]
        if self._stop is not None and at >= self._stop:
            return Signal.ENDED
        end = (at // self._rows + 1) * self._rows
        end = end if self._stop is None else min(end, self._stop)
        taken = self._channel.take(at, end - at)
        return taken if isinstance(taken, Signal) else (self.name, self._batch(taken, at))

    def _batch(self, taken: list[Pushed], at: int) -> Batch:
        batches: list[Batch] = []
        rows: list[Mapping[str, Any]] = []

        def flush() -> None:
            nonlocal at
            if rows:
                held = of_rows(rows, self._shape, at)
                batches.append(screened(held.records, self._shape, at, held.refused, held.shown))
                at += len(rows)
                rows.clear()

        for item in taken:
            if isinstance(item, pa.RecordBatch):
                flush()
                batches.append(screened(item, self._shape, at))
                at += item.num_rows
            else:
                rows.append(item)
        flush()
        return batches[0] if len(batches) == 1 else joined(batches)

    async def more(self) -> None:
        """Wait until something was pushed, or the stream is closed."""
        await self._more.wait()
        self._more.clear()

    def wake(self) -> None:
        """Let ``more`` return."""
        self._more.set()

    async def sync(self) -> None:
        """Do nothing: the program has the rows."""

    async def close(self) -> None:
        """End the stream: nothing more can be pushed."""
        self._channel.end(self)

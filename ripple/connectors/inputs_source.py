"""Inputs as a source for a one-shot run: one input, up to its present end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.connectors.background import Background
from ripple.connectors.inputs import Signal

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ripple.connectors.inputs import Inputs
    from ripple.model.batch import Batch, Marker


class InputsSource:
    """Reads one input that ends, in a thread of its own; see Source."""

    def __init__(self, inputs: Inputs, *, name: str, batch_rows: int) -> None:
        self.name = name
        self._inputs, self._batch_rows = inputs, batch_rows
        self._loop: Background | None = None

    def batches(self, from_offset: int = 0) -> Iterator[Batch | Marker]:
        """Yield the records from ``from_offset`` on; see Source."""
        self.close()
        loop = self._loop = Background()
        try:
            first, _ = loop.call(self._inputs.bounds())
            cut = {self.name: max(from_offset, first[self.name])}
            loop.call(self._inputs.open(cut, self._batch_rows))
            while self._loop is loop:
                batch = loop.call(self._next(cut))
                if batch is None:
                    return
                cut[self.name] = batch.next_offset
                yield batch
        finally:
            if self._loop is loop:
                self.close()

    async def _next(self, cut: dict[str, int]) -> Batch | Marker | None:
        while (said := self._inputs.next(cut)) is Signal.WAITING:
            await self._inputs.more()
        return None if isinstance(said, Signal) else said[1]

    def close(self) -> None:
        """Close the connection, and end the thread."""
        loop, self._loop = self._loop, None
        if loop is not None:
            try:
                loop.call(self._inputs.close())
            finally:
                loop.close()

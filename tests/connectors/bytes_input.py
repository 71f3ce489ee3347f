"""An input that is bytes in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    pass


class BytesInput:
    """A raw input that hands out its bytes in pieces of the given sizes, over and over."""

    def __init__(self, data: bytes, sizes: list[int]) -> None:
        self.data, self.sizes, self.reads = data, sizes, 0

    fraction_read = None

    def read_into(self, buffer: memoryview) -> int:
        size = min(self.sizes[self.reads % len(self.sizes)], len(buffer))
        self.reads += 1
        piece, self.data = self.data[:size], self.data[size:]
        buffer[: len(piece)] = piece
        return len(piece)

    def is_ready(self, timeout_ms: int) -> bool:
        return self.reads % 3 != 0

    def interrupt(self) -> None: ...

    def close(self) -> None: ...

"""Messages of a feed that cannot be read again, until they are a batch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.connectors.formats.contract import read_batch
from ripple.model.batch import RAW_BYTES_MAX, Batch, Rejected

if TYPE_CHECKING:
    from ripple.connectors.formats.contract import Values


class Held:
    """Messages that are no batch yet, from offset ``start`` to before ``end``."""

    def __init__(self, start: int) -> None:
        self.start = self.end = start
        self._offsets: list[int] = []
        self._data: list[bytes] = []
        self._refused: list[Rejected] = []

    def add(self, data: bytes) -> None:
        """Add a message that may be a record."""
        self._offsets.append(self.end)
        self._data.append(data)
        self.end += 1

    def refuse(self, reason: str, data: bytes) -> None:
        """Add a rejection."""
        self._refused.append(Rejected(self.end, None, reason, data[:RAW_BYTES_MAX]))
        self.end += 1

    def batch(self, values: Values) -> Batch:
        """Return all."""
        return read_batch(self._offsets, self._data, self._refused, self.end, values)

    def clear(self) -> None:
        """Begin after the handed-out messages."""
        self.start = self.end
        self._offsets, self._data, self._refused = [], [], []

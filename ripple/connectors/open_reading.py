"""The reading of a Source that is a generator, one at a time."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Generator

    from ripple.model.batch import Batch


class OpenReading:
    """The newest reading. Held weakly, so that it also ends when its iterator is dropped."""

    def __init__(self) -> None:
        self._found: weakref.ref[Generator[Any, None, None]] | None = None

    def begin(self, reading: Generator[Batch, None, None]) -> Generator[Batch, None, None]:
        """Hold a reading, and return it."""
        self._found = weakref.ref(reading)
        return reading

    def close(self) -> None:
        """End it, if there is one. Raises ValueError while another thread is in it."""
        reading = self._found() if self._found is not None else None
        if reading is not None:
            reading.close()

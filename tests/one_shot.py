"""Reads connectors as a one-shot run does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from ripple.connectors.connector import Reading
from ripple.connectors.source_inputs import ended
from ripple.model.batch import Batch, Marker
from ripple.task.one_shot import at_once, entries


def one_shot(
    opens: Callable[[str, Reading], Any],
    path: str,
    reading: Reading,
    from_offset: int | None = None,
) -> Iterator[Batch | Marker]:
    """Yield what is there, and close it at the end."""
    inputs = ended(opens(path, replace(reading, one_shot=True)), reading.name)
    try:
        cut = None if from_offset is None else {reading.name: from_offset}
        yield from entries(inputs, reading.batch_rows, cut)
    finally:
        at_once(inputs.close())

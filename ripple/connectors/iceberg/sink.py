"""Opens tables of Iceberg as sinks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.connectors.iceberg.table import IcebergTable
from ripple.connectors.iceberg.uri import TableUri
from ripple.connectors.tables.sink import ContinuedTable, WholeTable
from ripple.core.errors import OutputError

if TYPE_CHECKING:
    from ripple.connectors.connector import Writing


def open_table(path: str, writing: Writing) -> WholeTable:
    """Return the sink that writes a table whole; raises OutputError."""
    return WholeTable(_table(path, writing))


def continue_table(path: str, writing: Writing) -> ContinuedTable:
    """Return the sink that continues its table; raises OutputError."""
    return ContinuedTable(_table(path, writing), writing.epoch)


def look(path: str, writing: Writing) -> int:
    """Raise as ``continue_table`` does, with nothing changed; return the newest owner's epoch."""
    known = _table(path, writing).record()
    return 0 if known is None else known.epoch


def _table(path: str, writing: Writing) -> IcebergTable:
    place = TableUri.parse(path, OutputError)
    if place.snapshot:
        raise OutputError(f"cannot write iceberg:{path}: a snapshot is read alone; name the table")
    return IcebergTable(place, writing)

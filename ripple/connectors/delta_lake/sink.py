"""Opens tables of Delta Lake as sinks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.connectors.delta_lake.table import Table
from ripple.connectors.tables.sink import ContinuedTable, WholeTable
from ripple.core.errors import OutputError

if TYPE_CHECKING:
    from ripple.connectors.connector import Writing


def open_table(path: str, writing: Writing) -> WholeTable:
    """Return the sink that writes a table whole; raises OutputError."""
    return WholeTable(Table(_folder(path), writing))


def continue_table(path: str, writing: Writing) -> ContinuedTable:
    """Return the sink that goes on with its table; raises OutputError."""
    return ContinuedTable(Table(_folder(path), writing), writing.epoch)


def look(path: str, writing: Writing) -> int:
    """Raise as ``continue_table`` does, with nothing changed; return the newest owner's epoch."""
    known = Table(_folder(path), writing).record()
    return 0 if known is None else known.epoch


def _folder(path: str) -> str:
    if not path or "://" in path:
        raise OutputError(f"cannot tell which folder delta:{path} is: it must be delta:FOLDER")
    return path

"""Catalogs of Iceberg: their tables, and the errors of pyiceberg."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import pyarrow as pa

from ripple.connectors.iceberg.uri import TableUri
from ripple.connectors.library_errors import said
from ripple.core.errors import OutputError, RippleError
from ripple.core.extras import needed

with needed("iceberg", "a table of Iceberg"):
    from pyiceberg import exceptions
    from pyiceberg.catalog import load_catalog

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyiceberg.catalog import Catalog
    from pyiceberg.table import Table

# pyiceberg's have no common base. ValueError: of settings; RuntimeError: of a failed transaction;
# ModuleNotFoundError: of the package of a catalog.
TROUBLE: tuple[type[Exception], ...] = (
    *(one for one in vars(exceptions).values() if isinstance(one, type)),
    *(OSError, ValueError, RuntimeError, ModuleNotFoundError, pa.ArrowException),
)
with suppress(ModuleNotFoundError):  # of a catalog in SQL alone
    from sqlalchemy.exc import SQLAlchemyError

    TROUBLE = (*TROUBLE, SQLAlchemyError)
RECORD = "ripple"
"""The property of tables and of snapshots with the content of our commit."""


def catalog_of(place: TableUri, error: type[RippleError]) -> Catalog:
    """Return the catalog of a table; raises ``error`` without its settings."""
    try:
        return load_catalog(place.catalog)
    except TROUBLE as trouble:
        variable = f"PYICEBERG_CATALOG__{place.catalog.upper()}__URI"
        raise error(
            f"{place}: the catalog {place.catalog!r} cannot be opened ({said(trouble)}): set "
            f"{variable}, or name it in ~/.pyiceberg.yaml"
        ) from trouble


def table_in(catalog: Catalog, place: TableUri) -> Table | None:
    """Return a table as it is now, None without one; raises pyiceberg's errors."""
    try:
        return catalog.load_table(place.identifier)
    except exceptions.NoSuchTableError:
        return None


@contextmanager
def one_line_errors(before: str, error: type[RippleError]) -> Iterator[None]:
    """Raise ``error`` with one line in the place of pyiceberg's. before: its first words."""
    try:
        yield
    except TROUBLE as trouble:
        raise error(f"{before}: {said(trouble)}") from trouble


def check(text: str) -> str:
    """Describe the table; raises OutputError."""
    place = TableUri.parse(text, OutputError)
    with one_line_errors(str(place), OutputError):
        table = table_in(catalog_of(place, OutputError), place)
        if table is None:
            return "not there yet"
        snapshot = table.current_snapshot()
        origin = "made by a run" if RECORD in table.properties else "which no run has made"
        number = "none" if snapshot is None else str(snapshot.snapshot_id)
        return (
            f"a table of {len(table.snapshots())} snapshots, {origin}; the present one is {number}"
        )

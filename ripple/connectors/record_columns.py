"""Records of a program, brought into columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ripple.core.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa

    from ripple.connectors.validation import Shown


class RecordColumns(NamedTuple):
    """Records in columns. refused: reasons of rejected rows; shown: each row as text."""

    records: pa.RecordBatch
    refused: Mapping[int, str]
    shown: Shown | None


def check_any(names: Iterable[str], schema: pa.Schema, source: str) -> None:
    """Raise SchemaError where all columns are optional and absent."""
    if set(schema.names).isdisjoint(names):
        wanted, found = ", ".join(schema.names), ", ".join(map(str, names)) or "none"
        raise SchemaError(f"{source} has none of the columns {wanted}: it has {found}")

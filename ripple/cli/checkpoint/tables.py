"""The tables of checkpoints: comparison and export."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from ripple.connectors.target import open_target
from ripple.engine.operators.result_rows import SHOWN
from ripple.storage.checkpoint import CheckpointError

_EXAMPLES_MAX = 3


@dataclass(frozen=True, slots=True)
class Difference:
    """Keys that were added, removed or changed."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: tuple[str, ...]

    def __str__(self) -> str:
        kinds = {"added": self.added, "removed": self.removed, "changed": self.changed}
        return ", ".join(f"{len(keys)} {kind}{_examples(keys)}" for kind, keys in kinds.items())


def _examples(keys: tuple[str, ...]) -> str:
    if not keys:
        return ""
    more = ", ..." if len(keys) > _EXAMPLES_MAX else ""
    return f" ({', '.join(keys[:_EXAMPLES_MAX])}{more})"


def compare(before: pa.Table | None, after: pa.Table | None) -> Difference:
    """Return the difference of two tables of a fold; None: the fold does not exist."""
    tables = [table for table in (before, after) if table is not None]
    parts = _key_parts(tables)
    old, new = _rows(before, parts), _rows(after, parts)
    return Difference(
        added=tuple(key for key in new if key not in old),
        removed=tuple(key for key in old if key not in new),
        changed=tuple(key for key in new if key in old and old[key] != new[key]),
    )


def _key_parts(tables: list[pa.Table]) -> int:
    """Return the number of key columns, which come first."""
    # Accumulators and Ripple's own columns have a dot in their names.
    return len([*takewhile(lambda name: "." not in name, tables[0].column_names)])


def is_of_join(table: pa.Table) -> bool:
    """Return whether it tells of a join of tables, which has keys and aggregates nothing."""
    parts = _key_parts([table])
    return parts + 1 == table.num_columns and SHOWN in table.column_names


def _rows(table: pa.Table | None, parts: int) -> dict[str, tuple[object, ...]]:
    if table is None:
        return {}
    columns = [column.to_pylist() for column in table.columns]
    keys = zip(*columns[:parts], strict=True) if parts else [()] * table.num_rows
    values = zip(*columns[parts:], strict=True)
    return {"/".join(map(str, key)): value for key, value in zip(keys, values, strict=True)}


def write_table(table: pa.Table, path: Path) -> None:
    """Write a table as CSV or Parquet, by the file's ending; binary columns are hexadecimal in CSV.

    The file appears whole or not at all. Raises CheckpointError for another ending, OutputError.
    """
    written = pa.BufferOutputStream()
    if path.suffix == ".parquet":
        import pyarrow.parquet  # noqa: PLC0415 - slow to import, rarely needed

        pyarrow.parquet.write_table(table, written)
    elif path.suffix == ".csv":
        import pyarrow.csv  # noqa: PLC0415 - slow to import, rarely needed

        pyarrow.csv.write_csv(pa.table(_as_text(table)), written)
    else:
        raise CheckpointError(f"{path} must end in .csv or .parquet")
    target = open_target(path)
    try:
        target.write(memoryview(written.getvalue()))
        target.commit()
    finally:
        target.close()


def _as_text(table: pa.Table) -> dict[str, pa.Array]:
    """Return a table's columns in types that CSV can hold."""
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_large_binary(column.type) or pa.types.is_binary(column.type):
            hexadecimal = [None if value is None else value.hex() for value in column.to_pylist()]
            columns[name] = pa.array(hexadecimal, pa.string())
        elif pa.types.is_decimal(column.type):
            columns[name] = pc.cast(column, pa.string())
        elif pa.types.is_nested(column.type):
            columns[name] = pa.array(map(str, column.to_pylist()), pa.string())
        else:
            columns[name] = column
    return columns

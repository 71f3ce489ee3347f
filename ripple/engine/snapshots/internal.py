"""The engine's own columns in tables of state: named so that no field can be called like them."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ripple.model.pipeline.plan import INTERNAL_PREFIX


def internal(name: str) -> str:
    """Return the name of a column that is not a user's."""
    return f"{INTERNAL_PREFIX}{name}"


def as_now(table: pa.Table, columns: Sequence[str], absent: Sequence[str] = ()) -> pa.Table:
    """Return a table of state with the engine's own columns called as they are now.

    columns: those that the fold would write. Formats 1 and 2 of checkpoints have them without the
    prefix, and lack those called ``absent``; nulls in them mean that there was nothing yet.
    """
    names = list(table.column_names)
    for column in columns:
        old = column.removeprefix(INTERNAL_PREFIX)
        if column not in names and old != column and old in names:
            # Of two columns of one name, the engine's own came after the key.
            names[len(names) - 1 - names[::-1].index(old)] = column
    table = table.rename_columns(names)
    for column in absent:
        if column in columns and column not in names:
            table = table.append_column(column, pa.nulls(table.num_rows, pa.string()))
    return table

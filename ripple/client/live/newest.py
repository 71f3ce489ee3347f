"""The newest rows of one output: each key's last one, or the last events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from ripple.client.live.view import View
from ripple.core.errors import OutputError
from ripple.core.row_ops import OP
from ripple.engine.changes.column_table import ColumnTable
from ripple.engine.changes.layout import layout_of

if TYPE_CHECKING:
    from collections.abc import Callable

TIMES = ("window_start_ns", "window_end_ns")


class Newest:
    """Takes changes, and returns the rows to show.

    schema: of the changes. rows: how many to show. by: the column to sort by, with ``-`` before it
    descending. line: the column to draw. Raises OutputError for an unknown one.
    """

    def __init__(self, schema: pa.Schema, rows: int, by: str | None, line: str | None) -> None:
        self._rows, self._line = rows, line
        column = "" if by is None else by.lstrip("-")
        names = [name for name in schema.names if name != OP]
        for one in (column, line):
            if one and one not in names:
                raise OutputError(f"the output has no column {one!r}: it has {', '.join(names)}")
        if column and pa.types.is_nested(schema.field(column).type):
            raise OutputError(f"the rows cannot be sorted by {column!r}, of lists or records")
        if line is not None and not _is_number(schema.field(line).type):
            raise OutputError(f"a line is of numbers, and {line!r} is {schema.field(line).type}")
        self._order = [] if by is None else [(column, _direction(by))]
        self._schema = schema
        self._changes = self._events = 0
        self._last: list[pa.RecordBatch] = []
        self._table: ColumnTable | None = None
        if OP in schema.names:
            self._table = ColumnTable(layout_of(pa.schema(list(map(_plain_field, schema)))))

    def apply(self, changes: pa.RecordBatch) -> None:
        """Take changes of the table, or events."""
        self._changes += changes.num_rows
        if self._table is not None:
            self._table.apply(plain(changes))
            return
        self._events += changes.num_rows
        self._last.append(changes.slice(max(0, changes.num_rows - self._rows)))
        while sum(one.num_rows for one in self._last[1:]) >= self._rows:
            del self._last[0]

    def view(self, *, has_ended: bool) -> View:
        """Return the rows to show."""
        if self._table is not None:
            rows, names = self._table.rows(), self._table.layout.keys
            keys, count = len(names), rows.num_rows
            order = self._order or [(name, "ascending") for name in names]
            chosen = rows.take(self._first(rows, order)) if order else rows
        else:
            rows = pa.Table.from_batches(self._last).combine_chunks()
            count, keys = self._events, None
            newest = rows.slice(max(0, rows.num_rows - self._rows))
            chosen = newest.sort_by(self._order) if self._order else newest
            chosen = plain(chosen.combine_chunks().to_batches()[0])
        return View(
            columns=tuple(chosen.schema.names),
            keys=keys,
            rows=tuple(zip(*(_shown(chosen, at) for at in range(chosen.num_columns)), strict=True)),
            count=count,
            changes=self._changes,
            line=self._line,
            has_ended=has_ended,
        )

    def _first(self, rows: pa.RecordBatch, order: list[tuple[str, str]]) -> pa.Array:
        """Return the indexes of the rows to show; decimal texts of the table sort as numbers."""
        sorted_by = {name: rows.column(name) for name, _ in order}
        for name, column in sorted_by.items():
            if pa.types.is_decimal(kind := self._schema.field(name).type):
                sorted_by[name] = column.cast(kind)
        return pc.select_k_unstable(pa.record_batch(sorted_by), self._rows, order)


def plain(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows with numbers, truth values and texts alone: other values as texts."""
    columns = [
        column if (to_text := _texts_of(column.type)) is None else to_text(column)
        for column in rows.columns
    ]
    return pa.RecordBatch.from_arrays(columns, names=rows.schema.names)


def _plain_field(field: pa.Field) -> pa.Field:
    return field if _texts_of(field.type) is None else pa.field(field.name, pa.string())


def _texts_of(arrow: pa.DataType) -> Callable[[pa.Array], pa.Array] | None:
    """Return the function of a type's columns to texts; None if they are shown unchanged."""
    kinds = pa.types
    if kinds.is_integer(arrow) or kinds.is_floating(arrow) or kinds.is_boolean(arrow):
        return None
    if kinds.is_string(arrow):
        return None
    if kinds.is_temporal(arrow) or kinds.is_decimal(arrow) or kinds.is_large_string(arrow):
        return lambda column: column.cast(pa.string())
    return lambda column: pa.array(map(_text, column.to_pylist()), pa.string())


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _direction(by: str) -> str:
    return "descending" if by.startswith("-") else "ascending"


def _shown(rows: pa.RecordBatch, at: int) -> list[Any]:
    """Return a column's values; bounds of windows as times."""
    column = rows.column(at)
    if rows.schema.names[at] in TIMES and pa.types.is_int64(column.type):
        whole = not any(number % 10**9 for number in column.to_pylist())
        times = column.cast(pa.timestamp("ns", "UTC"))
        column = (times.cast(pa.timestamp("s", "UTC")) if whole else times).cast(pa.string())
    values: list[Any] = column.to_pylist()
    return values


def _is_number(kind: pa.DataType) -> bool:
    return any(
        test(kind) for test in (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    )

"""Changes before a commit of their table: the newest of each key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from ripple.connectors.tables.events import PendingEvents
from ripple.core.row_ops import OP, OP_REMOVE, place_of_op

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ripple.connectors.tables.table import OutputTable, Rows

PENDING_BYTES_MAX = 64 << 20
_POSITION = "ripple_position"


def pending_of(table: OutputTable) -> PendingEvents | PendingChanges:
    """Return a holder of a table's rows before their commit."""
    return PendingEvents(table.schema) if table.is_stream else PendingChanges(table)


class PendingChanges:
    """The newest change of each key since the last commit.

    So it is bounded by the state of the pipeline: a row a key.
    """

    def __init__(self, table: OutputTable) -> None:
        self._table = table
        self._kept: list[pa.Table] = []
        self._bytes = self._folded_bytes = 0

    def add(self, changes: pa.RecordBatch) -> None:
        """Add changes; without ``op`` all rows are set."""
        if place_of_op(changes.schema) < 0:
            op = pa.array([0] * changes.num_rows, pa.int8())
            changes = changes.append_column(OP, op)
        columns = [*self._table.schema.names, OP]
        self._kept.append(pa.Table.from_batches([changes.select(columns)]))
        self._bytes += changes.nbytes
        if self._bytes > max(PENDING_BYTES_MAX, 2 * self._folded_bytes):
            self._kept = [self.taken()]
            self._bytes = self._folded_bytes = self._kept[0].nbytes

    def taken(self) -> pa.Table:
        """Return the newest change of each key."""
        fields = [*(f.with_nullable(True) for f in self._table.schema), pa.field(OP, pa.int8())]
        schema = pa.schema(fields)
        rows = pa.concat_tables([one.cast(schema) for one in self._kept] or [schema.empty_table()])
        return newest(rows, self._table.key)

    def clear(self) -> None:
        """Forget all."""
        self._kept.clear()
        self._bytes = self._folded_bytes = 0

    close = clear


def newest(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """Return the last row of each key, in order of place; without a key the last one of all."""
    if not key:
        return rows.slice(max(0, rows.num_rows - 1))
    at = pa.array(range(rows.num_rows), pa.int64())
    grouped = rows.select(key).append_column(_POSITION, at)
    last = grouped.group_by(key).aggregate([(_POSITION, "max")])
    return rows.take(last[f"{_POSITION}_max"].combine_chunks().sort())


def plain(rows: Rows, schema: pa.Schema) -> Rows:
    """Return changes as rows of a table: the present ones, without their operations."""
    if isinstance(rows, pa.RecordBatchReader):
        return rows
    if OP in rows.column_names:
        rows = rows.filter(pa.compute.not_equal(rows[OP], OP_REMOVE)).drop_columns([OP])
    return rows.cast(schema)

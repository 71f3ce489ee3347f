"""Removals from the table of an edge, until their receiver has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.core.row_ops import OP, OP_REMOVE
from ripple.model.keys.space import key_space
from ripple.model.schema.types import Bool, Field, Int64, String

if TYPE_CHECKING:
    from collections.abc import Mapping

OP_FIELD = pa.field(OP, pa.int8(), nullable=False)


class Gone:
    """Rows that left a table since a receiver's last batch: final, or removed."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self._key = schema.names[: schema.names.index(OP)]
        self._final: list[pa.RecordBatch] = []
        self._removed: list[pa.Table] = []
        self.rows = 0

    def add(self, final: pa.RecordBatch) -> None:
        """Add final rows."""
        if final.num_rows:
            self._final.append(final)
            self.rows += final.num_rows

    def add_removed(self, keys: Mapping[str, pa.Array], count: int) -> None:
        """Add ``count`` keys that have no row any more; of no fields where there is one at most."""
        if count:
            self._removed.append(pa.table({**keys, OP: ops(OP_REMOVE, count)}))
            self.rows += count

    def take(self, present: pa.RecordBatch) -> pa.RecordBatch:
        """Return the ``present`` rows with the removed ones, each key once, and forget them."""
        rows = pa.concat_batches([present, *self._final])
        removed = self._removed
        self._final, self._removed = [], []
        self.rows = 0
        if not removed:
            return rows
        keys = pa.concat_tables(removed).combine_chunks()
        # Without key fields there is one row: it is there again, or gone.
        keys = self._without(rows, keys) if self._key else keys[: int(not rows.num_rows)]
        both = [pa.Table.from_batches([rows]), keys]
        return batch_of(pa.concat_tables(both, promote_options="default"), self.schema)

    def _without(self, rows: pa.RecordBatch, keys: pa.Table) -> pa.Table:
        """Return ``keys`` that ``rows`` have not, each once."""
        space = key_space([_key_field(keys.schema.field(name)) for name in self._key])
        there, slots = (
            space.slots([_whole(table.column(name)) for name in self._key])
            for table in (rows, keys)
        )
        first = np.unique(slots, return_index=True)[1]
        return keys.take(pa.array(first[~np.isin(slots[first], there)]))


def ops(op: int, rows: int) -> pa.Array:
    """Return the column of so many rows of one operation."""
    return pa.array(np.full(rows, op, np.int8))


def _key_field(field: pa.Field) -> Field:
    if pa.types.is_string(field.type):
        return Field(field.name, String())
    return Field(field.name, Bool() if pa.types.is_boolean(field.type) else Int64())


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def batch_of(table: pa.Table, schema: pa.Schema) -> pa.RecordBatch:
    """Return a table in one piece, with the columns of ``schema``."""
    columns = [table.column(name).combine_chunks() for name in schema.names]
    return pa.RecordBatch.from_arrays(columns, schema=schema)

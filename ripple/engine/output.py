"""What leaves the engine: the changes of one fold's rows between two cuts, and their digest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ripple.engine.arrow_types import arrow_fields
from ripple.engine.result_rows import row_arrays
from ripple.engine.row_order import RowOrder
from ripple.graph.column import Column, Tap
from ripple.pipeline.plan import OP_FIELD

if TYPE_CHECKING:
    from ripple.schema.types import Field

Ints = npt.NDArray[np.int64]

OP_SET, OP_REMOVE = 0, 2

_MODULUS = 1 << 64


class View:
    """Listens to a column: collects its changes and keeps the digest of its table.

    The digest is the sum, modulo 2^64, of the hashes of all rows that the table ever showed and
    did not withdraw. A row that became final counts although its memory was freed.

    Invariant between stabilizes: digest == final_digest + live_digest(), modulo 2^64.
    """

    def __init__(
        self,
        column: Column,
        fields: tuple[Field, ...],
        *,
        retractions: bool,
        order: RowOrder | None = None,
    ) -> None:
        """Listen to ``column``, whose fields beside its key are ``fields``.

        retractions: also keep changed rows as they were. order: of the changes; None keeps that
        in which the column's rows were touched.
        """
        self.column = column
        self._order = order
        self._keeps_retractions = retractions
        self.digest = 0
        self.final_digest = 0
        self.changed_rows_total = 0
        self._types = arrow_fields(fields)
        op = pa.field(OP_FIELD, pa.int8(), nullable=False)
        self.schema = pa.schema([op, *arrow_fields(column.keys.fields), *self._types])
        self._no_changes = pa.RecordBatch.from_pylist([], self.schema)
        self._changes = self._no_changes
        self._none_retracted = self._no_changes.drop_columns([OP_FIELD])
        self._retracted = self._none_retracted
        self._tap = Tap(column, self._receive)

    def _receive(self, column: Column) -> None:
        slots, was, now = column.changes()
        hashes = column.keys.hashes(slots)
        change = column.digest_changes(hashes)
        self.digest = (self.digest + change) % _MODULUS
        self.changed_rows_total += len(slots)
        order = None if self._order is None else self._order.positions(slots, hashes)
        if self._keeps_retractions:
            self._retracted = self._as_they_were(column, slots, was, order)
        if order is not None:
            slots, now = slots[order], now[order]
        present = None if np.count_nonzero(now) == len(now) else now.view(np.bool_)
        op = np.where(now, OP_SET, OP_REMOVE).astype(np.int8)
        rows = row_arrays(self._types, column.rows(slots), present)
        arrays = [pa.array(op), *column.keys.arrays(slots), *rows]
        self._changes = pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def _as_they_were(
        self, column: Column, slots: Ints, was: npt.NDArray[np.uint8], order: Ints | None
    ) -> pa.RecordBatch:
        old = row_arrays(self._types, column.old_rows(), None)
        batch = pa.RecordBatch.from_arrays(
            [*column.keys.arrays(slots), *old], schema=self.schema.remove(0)
        )
        chosen = np.arange(len(slots)) if order is None else order
        return batch.take(pa.array(chosen[was.view(np.bool_)[chosen]]))

    def take_retracted(self) -> pa.RecordBatch:
        """Return the rows that were shown and have changed since the last call, as they were."""
        retracted, self._retracted = self._retracted, self._none_retracted
        return retracted

    def take(self) -> pa.RecordBatch:
        """Return the changes since the last call: at most one per key."""
        changes, self._changes = self._changes, self._no_changes
        return changes

    def finalize(self, slots: Ints) -> None:
        """Note that the rows of ``slots`` will not change any more and are about to be freed."""
        if len(slots):
            final = self.column.digest_rows(slots, self.column.keys.hashes(slots))
            self.final_digest = (self.final_digest + final) % _MODULUS

    def live_digest(self) -> int:
        """Return the digest of the rows in memory alone, computed afresh."""
        slots = self.column.present_slots()
        return self.column.digest_rows(slots, self.column.keys.hashes(slots))

    def table(self) -> pa.Table:
        """Return the rows in memory: every row of the view that can still change."""
        slots = self.column.present_slots()
        arrays = [
            *self.column.keys.arrays(slots),
            *row_arrays(self._types, self.column.rows(slots), None),
        ]
        return pa.Table.from_arrays(arrays, schema=self.schema.remove(0))

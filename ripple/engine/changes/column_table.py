"""A keyed table in columns, changed in place by batches of deltas."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.core.errors import DeltaError
from ripple.core.row_ops import OP_FINAL, OP_REMOVE
from ripple.engine.changes.held import grown, held_column
from ripple.engine.changes.kernel import place_rows
from ripple.engine.changes.layout import (
    Batch,
    Layout,
    cleared_bitmap,
    ops_of,
    snapshot_of,
)
from ripple.model.keys.space import key_space

if TYPE_CHECKING:
    import numpy.typing as npt

    from ripple.engine.changes.layout import Bytes

    Slots = npt.NDArray[np.int64]

SPARE_ROWS = 4096  # a column may hold as many dead values as live ones, and so many more


class ColumnTable:
    """Rows by key, one array per field; a key's row stays at its slot while the key is there.

    ``apply`` costs a hash lookup per row and a write per value that changed: no Python object
    per row. Not safe for use by several threads at once.
    """

    # Invariants, between calls (check_invariants):
    #   present[slot] = 1 exactly for the live slots of the key space;
    #   a required column is valid at every present slot.

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self._keys = key_space(layout.key_fields)
        self._columns = [held_column(field.type) for field in layout.values]
        self._present: Bytes = np.zeros(0, np.uint8)
        self._stamps: Slots = np.zeros(0, np.int64)
        self._stamp = 0

    def __len__(self) -> int:
        return len(self._keys.index)

    def apply(self, deltas: Batch) -> None:
        """Apply one batch of deltas, all of it or nothing.

        Raises :class:`DeltaError` for deltas of another layout, a row that contradicts itself, a
        key that occurs twice, and a Patch with changes of an absent key; the table is then as it
        was before the call.
        """
        deltas = self.layout.conform(deltas)
        changed = self.layout.check(deltas)
        ops = ops_of(deltas)
        if not deltas.num_rows:
            return
        met = self.layout.slots(self._keys, deltas)
        self._reserve()
        self._keys.adopt(met)
        targets, self._stamp = met.copy(), self._stamp + 1
        bad = place_rows(ops, targets, changed, self._present, self._stamps, self._stamp)
        if bad >= 0:
            self._forget(met)
            raise self._misfit(deltas, bad, twice=bool((met[:bad] == met[bad]).any()))
        for field, column in zip(self.layout.values, self._columns, strict=True):
            values = deltas.column(field.name)
            column.write(ops, targets, values, cleared_bitmap(deltas, field))
        self._present[targets[targets >= 0]] = 1
        self._present[met[(ops == OP_REMOVE) | (ops == OP_FINAL)]] = 0
        self._forget(met)
        for column in self._columns:
            if column.spare_rows > len(self) + SPARE_ROWS:
                column.compact(self._keys.index.live_slots())

    def rows(self) -> Batch:
        """Return the table as one record batch, in slot order: a copy that stays as it is."""
        slots = self._keys.index.live_slots()
        arrays = self._keys.arrays(slots) + [column.read(slots) for column in self._columns]
        return pa.RecordBatch.from_arrays(arrays, schema=self.layout.table)

    def snapshot(self) -> Batch:
        """Return the deltas that make this table out of an empty one: all Set."""
        return snapshot_of(self.layout, self.rows())

    def _reserve(self) -> None:
        capacity = self._keys.capacity
        if len(self._present) < capacity:
            self._present = grown(self._present, capacity)
            self._stamps = grown(self._stamps, capacity)
            for column in self._columns:
                column.reserve(capacity)

    def _forget(self, met: Slots) -> None:
        """Free the slots that hold no row: those of keys removed, and of keys only looked up."""
        absent = met[self._present[met] == 0]
        if len(absent):
            self._keys.release(np.unique(absent))

    def _misfit(self, deltas: Batch, row: int, *, twice: bool) -> DeltaError:
        if twice:
            story = "the key occurs twice in one batch: compose its deltas first"
        else:
            story = "a Patch of a key that is absent: ask its author for a snapshot"
        return DeltaError(f"key {self.layout.key_at(deltas, row)!r}: {story}")

    def check_invariants(self) -> None:
        """Raise AssertionError when the table contradicts itself."""
        live = self._keys.index.live_slots()
        assert np.array_equal(np.flatnonzero(self._present), live)
        for field, column in zip(self.layout.values, self._columns, strict=True):
            assert field.nullable or column.read(live).null_count == 0, field.name

"""The rows of a stream that no row of their key precedes too closely, once that is certain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.engine.operators.held_by_key import HeldByKey
from ripple.engine.operators.held_rows import PLACE, TIME
from ripple.engine.snapshots.slot_arrays import grown
from ripple.model.pipeline.nodes import Distinct
from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ripple.engine.operators.rows import Rows
    from ripple.engine.operators.waiting import ByInput, Mark
    from ripple.engine.snapshots.held_saving import HeldSaving

    Ints = npt.NDArray[np.int64]


class DistinctRows(HeldByKey[Distinct]):
    """Holds rows until none on time can precede them; gives rows without a close predecessor."""

    def __init__(self, node: Distinct, feeds: Sequence[Mark], by_input: ByInput) -> None:
        """Make an empty node; see HeldByKey."""
        super().__init__(node, node.fields_out, feeds, by_input)
        self._swept_ns = watermark.NONE

    def take(self) -> Rows | None:
        """Return the rows that became final and stay, in their order; None if there are none."""
        mark_ns = self.watermark_ns
        if mark_ns == watermark.NONE:
            return None
        final = self._final(mark_ns)
        kept = None if final is None else self._decided(*final)
        if self._swept_ns == watermark.NONE or mark_ns - self._swept_ns > self.node.within_ns:
            self._sweep(mark_ns)
        return self._given(kept)

    def _decided(self, rows: Rows, slots: Ints) -> Rows | None:
        """Return those of final rows, in their order, that no row precedes too closely."""
        count, times = rows.count, np.asarray(rows.times_ns)
        order = np.argsort(slots, kind="stable")
        by_slot, at = slots[order], times[order]
        is_first = np.ones(count, np.bool_)
        is_first[1:] = by_slot[1:] != by_slot[:-1]
        before = np.empty(count, np.int64)
        before[1:] = at[:-1]
        before[is_first] = self._last[by_slot[is_first]]
        stays = np.empty(count, np.bool_)
        stays[order] = (before == watermark.NONE) | (before < at - self.node.within_ns)
        is_last = np.ones(count, np.bool_)
        is_last[:-1] = is_first[1:]
        self._last[by_slot[is_last]] = at[is_last]
        rows.keep(stays)
        rows.origin = None
        return rows if rows.count else None

    def _sweep(self, mark_ns: int) -> None:
        """Free the keys that decide nothing any more: now and then, for it looks at all of them."""
        self._swept_ns = mark_ns
        slots = self._keys.index.live_slots()
        self._free(slots[self._is_over(slots, mark_ns)])

    def _is_over(self, slots: Ints, mark_ns: int) -> npt.NDArray[np.bool_]:
        """Return which keys precede no row from a mark on too closely."""
        from_ns = max(mark_ns - self.node.within_ns, watermark.NONE)
        is_over: npt.NDArray[np.bool_] = self._last[slots] < from_ns
        return is_over

    # --- snapshots ---

    def savings(self) -> tuple[HeldSaving]:
        """Begin to dump the rows held, and per key that still decides its time, without a place."""
        mark_ns = self.watermark_ns
        slots = self._keys.index.live_slots()
        if mark_ns != watermark.NONE:
            slots = slots[~self._is_over(slots, mark_ns)]
        schema = self._held.schema
        arrays = dict(zip(self._names, self._keys.arrays(slots), strict=True))
        arrays[TIME] = pa.array(self._last[slots])
        nothing = (pa.nulls(len(slots), field.type) for field in schema)
        columns = [
            arrays.get(field.name, null) for field, null in zip(schema, nothing, strict=True)
        ]
        last = pa.RecordBatch.from_arrays(columns, schema=schema)
        return (self._held.saving([last]),)

    def load(self, tables: Sequence[pa.Table]) -> None:
        """Load dumped state."""
        (table,) = tables
        is_held = table.column(PLACE).is_valid()
        last, held = table.filter(pa.array(~np.asarray(is_held))), table.filter(is_held)
        slots = self._keys.slots([last.column(name).combine_chunks() for name in self._names])
        self._keys.adopt(slots)
        self._last = grown(self._last, self._keys.capacity, watermark.NONE)
        self._last[slots] = last.column(TIME).to_numpy()
        for batch in held.combine_chunks().to_batches():
            self._held.add(batch)

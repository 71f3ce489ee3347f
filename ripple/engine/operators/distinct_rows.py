"""The rows of a stream that no row of their key precedes too closely, once that is certain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.engine.operators.held_by_key import HeldByKey
from ripple.engine.operators.held_rows import PLACE, TIME
from ripple.model.pipeline.waiting_nodes import Distinct
from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ripple.engine.operators.feeds import Feeds
    from ripple.engine.operators.rows import Rows
    from ripple.engine.operators.waiting import ByInput
    from ripple.engine.snapshots.held_saving import HeldSaving

    Ints = npt.NDArray[np.int64]


class DistinctRows(HeldByKey[Distinct]):
    """Holds rows until none on time can precede them; gives rows without a close predecessor."""

    def __init__(self, node: Distinct, feeds: Feeds, by_input: ByInput) -> None:
        """Make an empty node; see HeldByKey."""
        super().__init__(node, node.fields_out, feeds, by_input, node.within_ns)

    def _made(self, rows: Rows, slots: Ints) -> Rows | None:
        order, _, times, before = self._by_slot(slots, np.asarray(rows.times_ns))
        stays = np.empty(rows.count, np.bool_)
        stays[order] = (before == watermark.NONE) | (before < times - self.node.within_ns)
        rows.keep(stays)
        rows.origin = None
        return rows if rows.count else None

    def _is_over(self, slots: Ints, mark_ns: int) -> npt.NDArray[np.bool_]:
        from_ns = max(mark_ns - self.node.within_ns, watermark.NONE)
        is_over: npt.NDArray[np.bool_] = self._last[slots] < from_ns
        return is_over

    # --- snapshots ---

    def savings(self) -> tuple[HeldSaving]:
        """Begin to dump the rows held, and per key that still decides its time, without a place."""
        slots = self._deciding()
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
        self._load(table.filter(pa.array(~np.asarray(is_held))), table.filter(is_held))

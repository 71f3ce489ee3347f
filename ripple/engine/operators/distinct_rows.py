"""The rows of a stream that no row of their key precedes too closely, once that is certain."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.engine.kernels.columns import Columns
from ripple.engine.kernels.keyed import Keyed
from ripple.engine.operators.held_rows import PLACE, TIME, HeldRows
from ripple.engine.operators.rows import Rows
from ripple.engine.operators.uncomputable import Failure, UncomputableRow, UncomputableRows
from ripple.engine.operators.waiting import PlacedRows, settled_ns
from ripple.engine.snapshots.slot_arrays import grown
from ripple.model.keys.space import key_space
from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from ripple.engine.kernels.intake import Intake
    from ripple.engine.operators.rows import RejectedRow
    from ripple.engine.operators.waiting import ByInput, Gate, Mark
    from ripple.model.pipeline.nodes import Distinct, Fields

    Ints = npt.NDArray[np.int64]


class DistinctRows(PlacedRows):
    """Holds rows until none on time can precede them; gives rows without a close predecessor.

    Invariants: every row held is at or above the last mark; ``_last`` has per key the greatest time
    below it, for those keys where it may still decide.
    """

    def __init__(self, node: Distinct, feeds: Sequence[Mark], by_input: ByInput) -> None:
        """Make an empty node.

        feeds: the inputs that it waits for. by_input: finds the inputs of its rows.
        """
        self.node = node
        self.sides = (self,)
        self.reader = node.name
        self.reads = node.reads
        self.lateness_ns = node.lateness_ns
        self._feeds = feeds
        self._by_input = by_input
        names = [field.name for field in node.key]
        self._keys = key_space(node.key)
        self._by_key = Keyed(self._keys, names)
        self.lost = UncomputableRows(self._keys)
        """Rows that a step behind this node cannot take."""
        self.given = 0
        self._taken: Rows | None = None
        self._names = names
        self._held = HeldRows(node.fields_out)
        self._last = np.empty(0, np.int64)
        self._swept_ns = watermark.NONE

    @property
    def watermark_ns(self) -> int:
        """No row below follows: each was given once it was final."""
        reached_ns = min(feed.watermark_ns for feed in self._feeds)
        return settled_ns(reached_ns, self.node.lateness_ns)

    @property
    def waiting_count(self) -> int:
        """The rows that are not final yet."""
        return self._held.count

    @property
    def state(self) -> None:
        """None: it is no join."""

    @property
    def key(self) -> Fields:
        """The fields by which rows are told apart."""
        return self.node.key

    def admit(self, rows: Rows) -> None:
        """Reject the rows without a key, before any state changes."""
        rows.reject_nulls(self._names, self.node.name)

    def hold(self, rows: Rows, identities: Ints | None = None) -> None:
        """Hold rows of one batch until they are final."""
        self._held.hold(rows, identities)

    def intake(self, gate: Gate) -> Intake | None:
        """Return what holds whole batches of a source, without null keys."""
        return self._held.intake(gate, self._names, None, self.lateness_ns)

    def take(self) -> Rows | None:
        """Return the rows that became final and stay, in their order; None if there are none."""
        mark_ns = self.watermark_ns
        if mark_ns == watermark.NONE:
            return None
        final = self._held.take_below(mark_ns)
        kept = None if final is None else self._decided(final)
        if self._swept_ns == watermark.NONE or mark_ns - self._swept_ns > self.node.within_ns:
            self._sweep(mark_ns)
        self._taken = kept
        self.given += 0 if kept is None else kept.count
        return kept

    def lose(self, refused: Iterable[RejectedRow]) -> None:
        """Count some of the rows taken last, which a step cannot take, and name the first."""
        taken, bad = self._taken, list(refused)
        assert taken is not None
        at = pa.array([one.row for one in bad])
        fields = [taken.columns.arrow(name).take(at).to_pylist() for name in self._names]
        times = [int(np.asarray(taken.times_ns)[one.row]) for one in bad]
        keys = zip(*fields, times, strict=True)
        self.lost.lose(
            UncomputableRow(key, *Failure.of(one.step, one.reason))
            for key, one in zip(keys, bad, strict=True)
        )

    def _decided(self, final: pa.RecordBatch) -> Rows | None:
        """Return those of final rows, in their order, that no row precedes too closely."""
        count = final.num_rows
        columns = {field.name: final.column(field.name) for field in self.node.fields_out}
        rows = Rows(Columns(columns), count, np.array(final.column(PLACE)))
        rows.times_ns = times = np.array(final.column(TIME))
        slots = self._by_key.slots(rows)
        self._keys.adopt(slots)
        self._last = grown(self._last, self._keys.capacity, watermark.NONE)
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
        over = slots[self._is_over(slots, mark_ns)]
        self._last[over] = watermark.NONE
        self._keys.release(over)
        if len(over):
            self._keys.trim()

    def _is_over(self, slots: Ints, mark_ns: int) -> npt.NDArray[np.bool_]:
        """Return which keys precede no row from a mark on too closely."""
        return self._last[slots] < max(mark_ns - self.node.within_ns, watermark.NONE)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._held.nbytes + self._last.nbytes + self._keys.index.nbytes

    # --- snapshots ---

    def dump(self) -> tuple[pa.Table]:
        """Return the rows held, and per key that still decides its time, without a place."""
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
        return (pa.Table.from_batches([last, *self._held.parts()], schema),)

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

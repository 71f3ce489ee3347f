"""The rows of an as-of join: each of the left side with the one of the right that counted then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.engine.kernels.columns import Columns
from ripple.engine.operators.held_rows import IDENTITY, PLACE, TIME
from ripple.engine.operators.join_rows import JoinRows
from ripple.engine.operators.rows import Rows
from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ripple.engine.operators.waiting import ByInput, Mark
    from ripple.model.pipeline.nodes import AsofJoin

    Ints = npt.NDArray[np.int64]


class AsofRows(JoinRows):
    """Holds rows of both sides until no row on time can change a match; gives those of the left.

    Invariants: every row that a side holds is at or above the last mark of both; ``_newest`` has
    per key the last row of the right side below it, and ``_slots`` their keys.
    """

    node: AsofJoin

    def __init__(self, node: AsofJoin, feeds: Sequence[Sequence[Mark]], by_input: ByInput) -> None:
        """Make an empty node; see JoinRows."""
        super().__init__(node, feeds, by_input)
        self._newest = pa.RecordBatch.from_pylist([], self.right.held.schema)
        self._slots = np.empty(0, np.int64)

    @property
    def watermark_ns(self) -> int:
        """No row below follows: each was given once its match was certain."""
        left_ns, right_ns = (side.settled_ns for side in self.sides)
        if self.node.is_strict and right_ns not in (watermark.NONE, watermark.END):
            right_ns += 1  # a row at the mark itself would not match
        return min(left_ns, right_ns)

    @property
    def _free_ns(self) -> int:
        """Up to here both sides are settled."""
        return min(side.settled_ns for side in self.sides)

    def take(self) -> Rows | None:
        """Return the rows of the left side with a certain match; None if there are none."""
        self.taken = None
        if self._free_ns == watermark.NONE:
            return None
        left = self.left.held.take_below(self.watermark_ns)
        right = self.right.held.take_below(self._free_ns)
        if left is None and right is None:
            return None
        if right is not None:
            self._slots = np.concatenate([self._slots, self.slots_of(right, self.right)])
            self._newest = _joined(self._newest, right)
        if left is not None:
            self.taken = self._with_matches(left)
        self._forget()
        self.given += 0 if self.taken is None else self.taken.count
        return self.taken

    def _with_matches(self, left: pa.RecordBatch) -> Rows | None:
        """Return rows of the left side, each with its match, or with nulls."""
        slots, times = self.slots_of(left, self.left), np.asarray(left.column(TIME))
        theirs = np.asarray(self._newest.column(TIME))
        at = last_before(slots, times, self._slots, theirs, is_strict=self.node.is_strict)
        if self.node.tolerance_ns is not None:
            far = times - theirs[at] > self.node.tolerance_ns if len(theirs) else at == -1
            at[far] = -1
        if self.node.deleted is not None and len(theirs):
            is_none = self._newest.column(self.node.deleted.name).fill_null(False)
            at[is_none.to_numpy(zero_copy_only=False)[at]] = -1
        self._release(slots)
        if self.node.how == "inner":
            left, at = left.filter(pa.array(at >= 0)), at[at >= 0]
        if not left.num_rows:
            return None
        columns = {field.name: left.column(field.name) for field in self.node.left_fields}
        picked = pa.array(at, mask=at < 0)
        added = zip(self.node.added, self.node.right_fields, strict=True)
        columns |= {one.name: self._newest.column(of.name).take(picked) for one, of in added}
        rows = Rows(Columns(columns), left.num_rows, np.array(left.column(PLACE)))
        rows.times_ns = np.array(left.column(TIME))
        if self.node.finals:
            self.identities_taken = np.array(left.column(IDENTITY))
        return rows

    def _forget(self) -> None:
        """Keep per key the last row of the right side, as long as the tolerance lets it match."""
        last = np.full(self.keys.capacity, -1, np.int64)
        last[self._slots] = np.arange(len(self._slots))
        kept = np.sort(last[last >= 0])
        kept = kept[np.asarray(self._newest.column(TIME))[kept] >= self._oldest_ns]
        before, self._slots = self._slots, self._slots[kept]
        if len(kept) < len(before):
            self._newest = self._newest.take(pa.array(kept))
            self._release(before)

    def _release(self, slots: Ints) -> None:
        """Free those of some keys that no row of the right side has."""
        gone = np.setdiff1d(slots[slots >= 0], self._slots)
        if len(gone):
            self.keys.release(gone)
            self.keys.trim()

    @property
    def _oldest_ns(self) -> int:
        """A row of the right side below it matches none of the left side that still follows."""
        if self.node.tolerance_ns is None or self._free_ns == watermark.NONE:
            return watermark.NONE
        return max(self._free_ns - self.node.tolerance_ns, watermark.NONE)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        held = self.left.held.nbytes + self.right.held.nbytes
        newest: int = self._newest.nbytes
        return held + newest + self._slots.nbytes + self.keys.index.nbytes

    # --- snapshots ---

    def dump(self) -> tuple[pa.Table, pa.Table]:
        """Return the rows of each side that are held."""
        left, right = (side.held for side in self.sides)
        near = pa.array(np.asarray(self._newest.column(TIME)) >= self._oldest_ns)
        rows = [self._newest.filter(near), *right.parts()]
        return (
            pa.Table.from_batches(left.parts(), left.schema),
            pa.Table.from_batches(rows, right.schema),
        )

    def load(self, tables: Sequence[pa.Table]) -> None:
        """Load dumped state."""
        for side, table in zip(self.sides, tables, strict=True):
            if table.num_rows:
                (batch,) = table.combine_chunks().to_batches()
                side.held.add(batch)


def last_before(
    slots: Ints, times: Ints, their_slots: Ints, their_times: Ints, *, is_strict: bool
) -> Ints:
    """Return per row which of the others with its slot is the last at its time or before; else -1.

    The others stand in their order, by slot. is_strict: not at its time.
    """
    count = len(their_slots)
    by_slot = np.concatenate([their_slots, slots])
    is_mine = np.arange(len(by_slot)) >= count
    last = is_mine != is_strict  # of one time, strictly: before the others
    order = np.lexsort((last, np.concatenate([their_times, times]), by_slot))
    places = np.where(is_mine[order], -1, np.arange(len(order)))
    before = np.maximum.accumulate(places)
    mine = order >= count
    found = before[mine]
    is_same = (
        (found >= 0) & (by_slot[order[found]] == by_slot[order[mine]]) & (by_slot[order[mine]] >= 0)
    )
    at = np.empty(len(slots), np.int64)
    at[order[mine] - count] = np.where(is_same, order[found], -1)
    return at


def _joined(one: pa.RecordBatch, other: pa.RecordBatch) -> pa.RecordBatch:
    return pa.concat_batches([one, other]) if one.num_rows else other

"""The rows of an as-of join: each of the left side with the one of the right that counted then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.engine.kernels.columns import Columns
from ripple.engine.operators.held_rows import IDENTITY, PLACE, TIME
from ripple.engine.operators.join_side import JoinSide
from ripple.engine.operators.rows import Rows
from ripple.engine.operators.uncomputable import Failure, UncomputableRow, UncomputableRows
from ripple.engine.operators.waiting import show_by_input
from ripple.model.keys.space import key_space
from ripple.model.pipeline.nodes import FLAT_ROWS_MAX
from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

    from ripple.engine.operators.rows import RejectedRow
    from ripple.engine.operators.stream_rows import StreamRows
    from ripple.engine.operators.waiting import ByInput, Mark
    from ripple.model.pipeline.nodes import AsofJoin

    Ints = npt.NDArray[np.int64]


class AsofRows:
    """Holds rows of both sides until no row on time can change a match; gives those of the left.

    Invariants: every row that a side holds is at or above the last mark of both; ``_newest`` has
    per key the last row of the right side below it, and ``_slots`` their keys.
    """

    def __init__(self, node: AsofJoin, feeds: Sequence[Sequence[Mark]], by_input: ByInput) -> None:
        """Make an empty node.

        feeds: what each side waits for. by_input: finds the inputs of rows of the left side.
        """
        self.node = node
        self.sides = tuple(JoinSide(node, number, of) for number, of in enumerate(feeds))
        self._left, self._right = self.sides
        self._by_input = by_input
        self._keys = key_space(node.key_of(0))
        self.lost = UncomputableRows(self._keys)
        """Rows that a step behind this node cannot take."""
        self.given = 0
        self._taken: Rows | None = None
        self._identities: Ints | None = None
        self._newest = pa.RecordBatch.from_pylist([], self._right.held.schema)
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
        self._taken = None
        if self._free_ns == watermark.NONE:
            return None
        left = self._left.held.take_below(self.watermark_ns)
        right = self._right.held.take_below(self._free_ns)
        if left is None and right is None:
            return None
        if right is not None:
            self._slots = np.concatenate([self._slots, self._slots_of(right, self._right)])
            self._newest = _joined(self._newest, right)
        if left is not None:
            self._taken = self._with_matches(left)
        self._forget()
        self.given += 0 if self._taken is None else self._taken.count
        return self._taken

    def _slots_of(self, batch: pa.RecordBatch, side: JoinSide) -> Ints:
        """Return the slot of each row's key, -1 where it is null."""
        columns = [batch.column(name) for name in side.names]
        nulls = np.zeros(batch.num_rows, np.bool_)
        for column in columns:
            if column.null_count:
                nulls |= column.is_null().to_numpy(zero_copy_only=False)
        if nulls.any():
            columns = [column.filter(pa.array(~nulls)) for column in columns]
        found = np.full(batch.num_rows, -1, np.int64)
        found[~nulls] = self._keys.slots(columns)
        self._keys.adopt(found[~nulls])
        return found

    def _with_matches(self, left: pa.RecordBatch) -> Rows | None:
        """Return rows of the left side, each with its match, or with nulls."""
        slots, times = self._slots_of(left, self._left), np.asarray(left.column(TIME))
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
            self._identities = np.array(left.column(IDENTITY))
        return rows

    def _forget(self) -> None:
        """Keep per key the last row of the right side, as long as the tolerance lets it match."""
        last = np.full(self._keys.capacity, -1, np.int64)
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
            self._keys.release(gone)
            self._keys.trim()

    @property
    def _oldest_ns(self) -> int:
        """A row of the right side below it matches none of the left side that still follows."""
        if self.node.tolerance_ns is None or self._free_ns == watermark.NONE:
            return watermark.NONE
        return max(self._free_ns - self.node.tolerance_ns, watermark.NONE)

    def show(self, stream: StreamRows, name: str, rows: Rows) -> None:
        """Show some of the rows taken last, each by the input of its left side."""
        del name
        show_by_input(stream, rows, self._origins(rows))

    def _origins(self, rows: Rows) -> Iterator[tuple[str, Ints, Ints, Ints]]:
        assert rows.offsets is not None
        rest = np.ones(rows.count, np.bool_)
        for found in self._by_input(rows.offsets):
            rest[found[1]] = False
            yield found
        identities = self.identities(rows)
        if identities is not None and rest.any():
            at = np.flatnonzero(rest)
            yield self.node.finals, at, identities[at], rows.offsets[at] % FLAT_ROWS_MAX

    def identities(self, rows: Rows) -> Ints | None:
        """Return the identities of some of the rows taken last, where places do not tell them."""
        return None if self._identities is None else self._identities[rows.origins]

    def lose(self, refused: Iterable[RejectedRow]) -> None:
        """Count some of the rows taken last, which a step cannot take, and name the first."""
        taken, bad = self._taken, list(refused)
        assert taken is not None
        at = pa.array([one.row for one in bad])
        fields = [taken.columns.arrow(name).take(at).to_pylist() for name in self._left.names]
        times = np.asarray(taken.times_ns)[[one.row for one in bad]].tolist()
        keys = zip(*fields, times, strict=True)
        self.lost.lose(
            UncomputableRow(key, *Failure.of(one.step, one.reason))
            for key, one in zip(keys, bad, strict=True)
        )

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        held = self._left.held.nbytes + self._right.held.nbytes
        newest: int = self._newest.nbytes
        return held + newest + self._slots.nbytes + self._keys.index.nbytes

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

"""The rows of an as-of join from their reading on, corrected by each better match."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.engine.operators.held_rows import PLACE, TIME
from ripple.engine.operators.joins.eager_rows import EagerRows
from ripple.engine.operators.joins.join_side import key_slots
from ripple.engine.operators.passed_rows import Numbers, PassedRows
from ripple.engine.operators.row_order import FIRST_NS, LAST_NS, RowOrder, earlier, later
from ripple.engine.snapshots.slot_arrays import grown
from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ripple.engine.graph.node import Graph
    from ripple.engine.operators.joins.asof_rows import AsofRows
    from ripple.model.pipeline.nodes import RowTable

    Ints = npt.NDArray[np.int64]

_UNNEEDED_MAX = 4096
_NONE = np.empty(0, np.int64)


class RowTableRows(EagerRows):
    """The rows of the left side until they are final, each with its match so far.

    Its state follows from the rows that the join holds, so a snapshot has none. Invariants between
    stabilizations: ``_left`` and ``_right`` have the rows of both sides from the marks of the join
    on, and of the right side those before that may still match; ``_slot_of`` has per row of
    ``_left`` its slot in ``column``, -1 once it left, and ``_number_of`` the row of each slot.
    """

    def __init__(self, graph: Graph, fold: RowTable, join: AsofRows) -> None:
        """Show the rows of ``join``."""
        super().__init__(graph, fold, join)
        self._join, self._node = join, join.node
        self._left, self._right = (PassedRows(side.held.schema) for side in join.sides)
        self._waiting, self._others = RowOrder(), RowOrder()
        self._slot_of = Numbers()
        self._number_of = _NONE
        self._needed_before = 0

    def settle(self, watermark_ns: int) -> None:
        """Take the new rows of both sides, and show those with another match."""
        del watermark_ns
        left, right = (side.take_news() for side in self._join.sides)
        touched = []
        if right is not None:
            touched.append(self._touched_by(self._add_right(right)))
        if left is not None:
            touched.append(self._add_left(left))
        if touched:
            self._show_rows(np.unique(np.concatenate(touched)))
        self._end()

    # --- rows that come ---

    def _add_left(self, rows: pa.RecordBatch) -> Ints:
        """Take rows of the left side; return their numbers."""
        slots = key_slots(self._matched_by, rows, self._join.left.names)
        times, places = np.asarray(rows.column(TIME)), np.asarray(rows.column(PLACE))
        numbers = len(self._left) + np.arange(rows.num_rows)
        self._left.add(rows, slots, times)
        keyed = slots >= 0
        self._waiting.add(slots[keyed], times[keyed], places[keyed], numbers[keyed])
        found = self.keys.slots(self._origins(0, rows))
        self.keys.adopt(found)
        self._number_of = grown(self._number_of, self.keys.capacity, -1)
        self._number_of[found] = numbers
        self._slot_of.add(found)
        return numbers

    def _add_right(self, rows: pa.RecordBatch) -> Ints:
        """Take rows of the right side; return where they are in their order."""
        slots = key_slots(self._matched_by, rows, self._join.right.names)
        times, places = np.asarray(rows.column(TIME)), np.asarray(rows.column(PLACE))
        numbers = len(self._right) + np.arange(rows.num_rows)
        self._right.add(rows, slots, times)
        return self._others.add(slots, times, places, numbers)

    def _touched_by(self, at: Ints) -> Ints:
        """Return the waiting rows that may match new rows of the right side.

        A match stands next to its row: so these are the rows up to the neighbours on that side.
        """
        node, slots, times = self._node, self._others.slots[at], self._others.times[at]
        begin, end = self._waiting.first_at, self._waiting.end_at
        if node.is_strict:
            begin, end = end, begin
        ranges = []
        if node.strategy != "forward":
            has_next, theirs = self._neighbours(at, 1)
            last = self._waiting.end_at(slots, np.full(len(at), LAST_NS))
            ends = np.where(has_next, begin(slots, theirs), last)
            if node.tolerance_ns is not None:
                near = self._waiting.end_at(slots, later(times, node.tolerance_ns))
                ends = np.minimum(ends, near)
            ranges.append((begin(slots, times), ends))
        if node.strategy != "backward":
            has_last, theirs = self._neighbours(at, -1)
            first = self._waiting.first_at(slots, np.full(len(at), FIRST_NS))
            begins = np.where(has_last, end(slots, theirs), first)
            assert node.tolerance_ns is not None, "looking ahead is bounded"
            near = self._waiting.first_at(slots, earlier(times, node.tolerance_ns))
            ranges.append((np.maximum(begins, near), end(slots, times)))
        return np.concatenate([self._waiting.numbers[_within(*each)] for each in ranges])

    def _neighbours(self, at: Ints, step: int) -> tuple[npt.NDArray[np.bool_], Ints]:
        """Return which rows of the right side have one of their key beside them, and its time."""
        beside = at + step
        is_there = (beside >= 0) & (beside < len(self._others))
        beside[~is_there] = 0
        is_there &= self._others.slots[beside] == self._others.slots[at]
        return is_there, self._others.times[beside]

    # --- rows as they are ---

    def _show_rows(self, numbers: Ints) -> None:
        """Let rows show their present matches."""
        slots = self._slot_of.values[numbers]
        self._show(slots[slots >= 0])

    def results(self, slots: Ints) -> tuple[Ints, dict[str, Any], dict[int, str]]:
        """Return (slots of rows, their fields by name, unreadable ones: none)."""
        numbers = self._number_of[slots]
        matches = self._matches(self._left.slots[numbers], self._left.times[numbers])
        if self._node.how == "inner":
            there = matches >= 0
            slots, numbers, matches = slots[there], numbers[there], matches[there]
        named: dict[str, Any] = {
            field.name: self._left.column(field.name, numbers) for field in self._node.left_fields
        }
        for field, of in zip(self._node.added, self._node.right_fields, strict=True):
            named[field.name] = self._right.column(of.name, matches)
        return slots, named, {}

    def _matches(self, slots: Ints, times: Ints) -> Ints:
        """Return which rows of the right side match at these keys and times, -1 for none."""
        node = self._node
        if node.strategy == "backward":
            found = self._before(slots, times)
        elif node.strategy == "forward":
            found = self._after(slots, times)
        else:
            before, after = self._before(slots, times), self._after(slots, times)
            nearer = _span(times, self._times_of(after)) < _span(self._times_of(before), times)
            found = np.where((after >= 0) & ((before < 0) | nearer), after, before)
        if node.deleted is not None:
            is_none = self._right.column(node.deleted.name, found).fill_null(False)
            found[is_none.to_numpy(zero_copy_only=False)] = -1
        return found

    def _before(self, slots: Ints, times: Ints) -> Ints:
        """Return the last row of the right side at these times or before, -1 for none."""
        end = self._others.first_at if self._node.is_strict else self._others.end_at
        return self._near(end(slots, times) - 1, slots, times)

    def _after(self, slots: Ints, times: Ints) -> Ints:
        """Return the first row of the right side at these times or later, -1 for none."""
        first = self._others.end_at if self._node.is_strict else self._others.first_at
        return self._near(first(slots, times), slots, times)

    def _near(self, at: Ints, slots: Ints, times: Ints) -> Ints:
        """Return the rows of the right side there, -1 where one is of another key or too far."""
        if not len(self._others):
            return np.full(len(at), -1)
        is_there = (at >= 0) & (at < len(self._others))
        at = np.where(is_there, at, 0)
        is_there &= self._others.slots[at] == slots
        if self._node.tolerance_ns is not None:
            theirs = self._others.times[at]
            span = _span(np.minimum(theirs, times), np.maximum(theirs, times))
            is_there &= span <= np.uint64(self._node.tolerance_ns)
        return np.where(is_there, self._others.numbers[at], -1)

    def _times_of(self, numbers: Ints) -> Ints:
        return self._right.times[numbers] if len(self._right) else np.zeros_like(numbers)

    # --- rows that leave ---

    def _end(self) -> None:
        """Note the rows that the join has given: they stay as they are."""
        is_over = (self._left.times < self._join.watermark_ns) & (self._slot_of.values >= 0)
        if self._join.watermark_ns == watermark.END:
            is_over = self._slot_of.values >= 0
        self._over = self._slot_of.values[is_over]

    def free(self, expired: Ints) -> None:
        """Free these slots, and the rows of the right side that match nothing any more."""
        if len(expired):
            self.uncomputable.finalize(expired)
            self.column.retire(expired)
            self._slot_of.values[self._number_of[expired]] = -1
            self._number_of[expired] = -1
            self.keys.release(expired)
        held = len(self._left) + len(self._right) + len(self._matched_by.index)
        if held > 2 * self._needed_before + _UNNEEDED_MAX:
            self._drop()

    def _drop(self) -> None:
        """Drop the rows no longer needed, and the keys without a row."""
        live = np.flatnonzero(self._slot_of.values >= 0)
        slots = self._slot_of.values[live]
        self._waiting = self._waiting.renumbered(_renumbering(live, len(self._left)))
        self._left, self._slot_of = self._left.some(live), Numbers()
        self._slot_of.add(slots)
        self._number_of[slots] = np.arange(len(live))
        needed = self._needed()
        self._others = self._others.renumbered(_renumbering(needed, len(self._right)))
        self._right = self._right.some(needed)
        is_used = np.zeros(self._matched_by.capacity, np.bool_)
        is_used[self._waiting.slots] = is_used[self._right.slots] = True
        used = self._matched_by.index.live_slots()
        self._matched_by.release(used[~is_used[used]])
        self._matched_by.trim()
        self._needed_before = len(live) + len(needed) + len(self._matched_by.index)

    def _needed(self) -> Ints:
        """Return which rows of the right side may still match: as many as the join keeps."""
        order, oldest_ns = self._others, self._join.oldest_ns
        needed = order.times >= oldest_ns
        if self._node.strategy == "backward" and len(order):
            known_ns = self._join.known_ns
            is_last = np.append(order.slots[1:] != order.slots[:-1], True)
            is_last[:-1] |= order.times[1:] >= known_ns
            needed &= (order.times >= known_ns) | is_last
        return np.sort(order.numbers[needed])

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        orders = self._waiting.nbytes + self._others.nbytes
        keys = self.keys.index.nbytes + self._matched_by.index.nbytes
        rows = self._left.nbytes + self._right.nbytes + self._slot_of.nbytes
        return orders + keys + rows + self._number_of.nbytes + self.column.nbytes

    # --- snapshots: of the join alone ---

    def load(self, table: pa.Table, watermark_ns: int) -> None:
        """Show the rows that the join holds, which was loaded before."""
        del table, watermark_ns
        left, right = (table.combine_chunks().to_batches() for table in self._join.dump())
        for rows in right:
            self._add_right(rows)
        for rows in left:
            self._show_rows(self._add_left(rows))


def _span(times: Ints, later_times: Ints) -> npt.NDArray[np.uint64]:
    """Return the spans from times to later ones, beyond the reach of int64."""
    return later_times.view(np.uint64) - times.view(np.uint64)


def _within(begins: Ints, ends: Ints) -> Ints:
    """Return the numbers from each of ``begins`` to below its end."""
    counts = np.maximum(ends - begins, 0)
    firsts = np.cumsum(counts) - counts
    return np.repeat(begins - firsts, counts) + np.arange(int(counts.sum()))


def _renumbering(kept: Sequence[int] | Ints, count: int) -> Ints:
    """Return the new number of each row, -1 for a dropped one."""
    found = np.full(count, -1)
    found[kept] = np.arange(len(kept))
    return found

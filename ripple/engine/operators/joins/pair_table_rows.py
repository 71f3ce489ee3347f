"""The pairs of an interval join from their reading on, and its rows without a partner so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ripple.engine.kernels.row_order import RowOrder
from ripple.engine.operators.held_rows import PLACE, TIME
from ripple.engine.operators.joins.eager_rows import EagerRows, take_final
from ripple.engine.operators.joins.eager_side import EagerSide
from ripple.engine.operators.joins.join_side import key_slots
from ripple.engine.operators.joins.pieces import pieces
from ripple.engine.operators.waiting import settled_ns
from ripple.engine.snapshots.slot_arrays import grown
from ripple.model.keys.index import KeyIndex
from ripple.model.pipeline.nodes import FLAT_ROWS_MAX
from ripple.model.pipeline.waiting_nodes import IntervalJoin
from ripple.model.schema.exported import as_arrow
from ripple.model.window import watermark

if TYPE_CHECKING:
    import numpy.typing as npt

    from ripple.engine.graph.node import Graph
    from ripple.engine.operators.joins.interval_rows import PiecewiseRows
    from ripple.model.pipeline.nodes import RowTable

    Ints = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

_UNNEEDED_MAX = 4096
_NONE = np.empty(0, np.int64)


class PairTableRows(EagerRows):
    """The pairs of the rows that an interval join holds, and its rows without a partner.

    A pair has its slot in ``column`` until its left row is final, a row without a partner until it
    is final itself: as in the final join. A record of which there are too many rows shows none, and
    has no further slots. Invariants between stabilizations: ``_numbers`` has per slot the rows of
    both sides, -1 for none, and ``_ends`` has these slots by their event times; ``_made`` has per
    record how many rows there are of it. Rows below ``_final_ns`` are over.
    """

    def __init__(self, graph: Graph, fold: RowTable, join: PiecewiseRows[Any]) -> None:
        """Show the rows of ``join``."""
        super().__init__(graph, fold, join)
        assert isinstance(join.node, IntervalJoin), "no other joins"
        self._join, self._node = join, join.node
        self._names = [side.names for side in join.sides]
        shown = [self._node.how in ("left", "full"), self._node.shows_right]
        self._sides = [
            EagerSide(side.held.schema, shows_alone=alone)
            for side, alone in zip(join.sides, shown, strict=True)
        ]
        self._records, self._made = KeyIndex(), _NONE
        self._numbers = [_NONE, _NONE]
        self._ends = RowOrder()
        self._final_ns = watermark.NONE
        self._needed_before = 0

    def settle(self, watermark_ns: int) -> None:
        """Take the new rows of both sides, and show their pairs."""
        del watermark_ns
        self._take([as_arrow(side.take_news()) for side in self._join.sides])
        self._end()

    # --- rows that come ---

    def _take(self, news: list[pa.RecordBatch | None]) -> None:
        """Take new rows of both sides."""
        if news == [None, None]:
            return
        firsts = [len(side) for side in self._sides]
        for side, rows in enumerate(news):
            if rows is not None:
                self._add(side, rows)
        left, right = self._sides
        node = self._node
        of_left = right.near(*_keyed(left, firsts[0]), node.lo_ns, node.hi_ns)
        of_right = left.near(*_keyed(right, firsts[1]), -node.hi_ns, -node.lo_ns)
        touched = [
            self._count(left, firsts[0], of_left, of_right),
            self._count(right, firsts[1], of_right, of_left),
        ]
        shown, hidden = self._recount(touched, firsts)
        # Pairs of new rows on the left, and of older ones with new rows on the right.
        self._pair(0, np.arange(firsts[0], len(left)), of_left, len(left))
        self._pair(1, np.arange(firsts[1], len(right)), of_right, firsts[0])
        if len(shown):
            again = np.flatnonzero(np.isin(left.records, shown) & self._is_waiting(left))
            slots, times = left.rows.slots[again], left.rows.times[again]
            self._pair(0, again, right.near(slots, times, node.lo_ns, node.hi_ns), len(left))
        self._show_alone(touched, np.concatenate([shown, hidden]))

    def _add(self, number: int, rows: pa.RecordBatch) -> None:
        """Take new rows of one side."""
        slots = key_slots(self._matched_by, rows, self._names[number])
        places = np.asarray(rows.column(PLACE))
        of = self._records.slots_of_pairs(np.asarray(rows.column(TIME)), places // FLAT_ROWS_MAX)
        self._made = grown(self._made, self._records.capacity, 0)
        self._sides[number].add(rows, slots, of, self._origins(number, rows))

    @staticmethod
    def _count(
        side: EagerSide, first: int, mine: tuple[Ints, Ints], others: tuple[Ints, Ints]
    ) -> tuple[Ints, Ints]:
        """Count the partners of a side's rows.

        Returns which rows are new or have more partners now, and how many they had before.
        first: of the new rows. mine: where the partners of these begin and end. others: the same of
        the new rows on the other side, among the rows of this one.
        """
        counts = side.counts
        at, more = side.order.covered(*others)
        older = np.sort(at[at < first])
        before = np.concatenate([counts[older], np.zeros(len(side) - first, np.int64)])
        counts[at] += more
        counts[first:] = mine[1] - mine[0]
        return np.concatenate([older, np.arange(first, len(side))]), before

    def _recount(self, touched: list[tuple[Ints, Ints]], firsts: list[int]) -> tuple[Ints, Ints]:
        """Count the rows of records; return the records that have not too many any more, or now."""
        sides = zip(self._sides, touched, strict=True)
        records = np.unique(np.concatenate([side.records[rows] for side, (rows, _) in sides]))
        before = self._made[records] > FLAT_ROWS_MAX
        for number, (side, first) in enumerate(zip(self._sides, firsts, strict=True)):
            rows, counts = touched[number]
            pairs = number == 0
            made = _made(side.counts[rows], pairs=pairs, alone=side.shows_alone)
            made -= np.where(rows < first, _made(counts, pairs=pairs, alone=side.shows_alone), 0)
            np.add.at(self._made, side.records[rows], made)
        after = self._made[records] > FLAT_ROWS_MAX
        return records[before & ~after], records[after & ~before]

    def _pair(self, number: int, rows: Ints, near: tuple[Ints, Ints], below: int) -> None:
        """Show rows of a side with partners between bounds; of left ones those below a number."""
        mine, other = self._sides[number], self._sides[1 - number]
        fits = self._made[mine.records[rows]] <= FLAT_ROWS_MAX if number == 0 else None
        counts = near[1] - near[0]
        if fits is not None:
            counts = counts * fits
        for piece in pieces(counts):
            many = counts[piece]
            one = np.repeat(rows[piece], many)
            begins = near[0][piece]
            two = other.order.numbers_in(begins, begins + many)
            left, right = (one, two) if number == 0 else (two, one)
            kept = left < below
            kept &= self._is_from(self._sides[0].rows.times[left])
            if number == 1:
                kept &= self._made[self._sides[0].records[left]] <= FLAT_ROWS_MAX
            if kept.any():
                self._show(self._slots(left[kept], right[kept]))

    def _slots(self, left: Ints, right: Ints) -> Ints:
        """Return the slots of pairs, or of rows without a partner."""
        each = [side.key_of(at) for side, at in zip(self._sides, (left, right), strict=True)]
        slots = self.keys.slots([*each[0], *each[1]])
        self.keys.adopt(slots)
        capacity = self.keys.capacity
        self._numbers = [grown(of, capacity, -1) for of in self._numbers]
        is_new = (self._numbers[0][slots] < 0) & (self._numbers[1][slots] < 0)
        for of, at in zip(self._numbers, (left, right), strict=True):
            of[slots] = at
        times = _either(self._sides[0].rows.times, left, self._sides[1].rows.times, right)
        new = slots[is_new]
        self._ends.add(np.zeros_like(new), times[is_new], new, new)
        return slots

    def _show_alone(self, touched: list[tuple[Ints, Ints]], records: Ints) -> None:
        """Show rows without a partner, no more those with one, nor those of some records."""
        slots = [_NONE]
        for number, side in enumerate(self._sides):
            rows = touched[number][0]
            new = rows[(side.counts[rows] == 0) & (side.alone[rows] < 0)]
            new = new[self._is_waiting(side, new)] if side.shows_alone else new[:0]
            if len(new):
                missing = np.full(len(new), -1)
                pair = (new, missing) if number == 0 else (missing, new)
                side.alone[new] = self._slots(*pair)
            slots.append(side.alone[rows])
        if len(records):
            live = self._live()
            slots.append(live[np.isin(self._record_of(live), records)])
        every = np.unique(np.concatenate(slots))
        if len(every := every[every >= 0]):
            self._show(every)

    def _live(self) -> Ints:
        """Return the slots of rows that are not final."""
        return np.flatnonzero((self._numbers[0] >= 0) | (self._numbers[1] >= 0))

    def _is_waiting(self, side: EagerSide, rows: Ints | slice = slice(None)) -> Mask:
        """Return which rows of a side were not final before the last stabilization."""
        return self._is_from(side.rows.times[rows])

    def _is_from(self, times: Ints) -> Mask:
        if self._final_ns == watermark.END:
            return np.zeros(len(times), np.bool_)
        found: Mask = times >= self._final_ns
        return found

    def _record_of(self, slots: Ints) -> Ints:
        """Return the records that slots count in."""
        left, right = (of[slots] for of in self._numbers)
        return _either(self._sides[0].records, left, self._sides[1].records, right)

    # --- rows as they are ---

    def open_keys(self) -> pa.Table:
        """Return the origins of the left rows that are not final; with them their pairs are."""
        left = self._sides[0]
        origins = left.key_of(np.flatnonzero(self._is_waiting(left)))
        names = [field.name for field in self.fold.key]
        return pa.table(origins, names[: len(origins)])

    def results(self, slots: Ints) -> tuple[Ints, dict[str, Any], dict[int, str]]:
        """Return (slots of rows, their fields by name, unreadable ones: none)."""
        node = self._node
        is_there = self._made[self._record_of(slots)] <= FLAT_ROWS_MAX
        for side, mine, other in zip(self._sides, self._numbers, self._numbers[::-1], strict=True):
            at = np.flatnonzero(other[slots] < 0)
            is_there[at] &= side.counts[mine[slots[at]]] == 0
        slots = slots[is_there]
        left, right = (of[slots] for of in self._numbers)
        ours, theirs = (side.rows for side in self._sides)
        named: dict[str, Any] = {
            field.name: ours.column(field.name, left) for field in node.left_fields
        }
        if node.shows_right:
            for own, of in node.on:
                named[own.name] = pc.coalesce(named[own.name], theirs.column(of.name, right))
        for field, of in zip(node.added, node.right_fields, strict=True):
            named[field.name] = theirs.column(of.name, right)
        return slots, named, {}

    # --- rows that leave ---

    def _end(self) -> None:
        """Note the rows that the join has given: they stay as they are."""
        if self._join.watermark_ns == self._final_ns:
            return
        self._final_ns = self._join.watermark_ns
        over, self._ends = take_final(self._ends, self._final_ns)
        self._over = np.concatenate([self._over, np.sort(over)])

    def free(self, expired: Ints) -> None:
        """Free these slots, and the rows of both sides that are in no further pair."""
        if len(expired):
            self._release(expired)
            for of in self._numbers:
                of[expired] = -1
        held = sum(map(len, self._sides)) + len(self._matched_by.index)
        if held > 2 * self._needed_before + _UNNEEDED_MAX:
            self._drop()

    def _drop(self) -> None:
        """Drop the rows no longer needed, and the keys and records without a row."""
        live = self._live()
        records, made = KeyIndex(), _NONE
        for number, side in enumerate(self._sides):
            kept = np.flatnonzero(self._is_needed(number, side.rows.times))
            new = np.full(len(side) + 1, -1)
            new[kept] = np.arange(len(kept))
            self._numbers[number][live] = new[self._numbers[number][live]]
            of = records.slots_of_pairs(*self._records.pairs_at(side.records[kept]))
            made = grown(made, records.capacity, 0)
            made[of] = self._made[side.records[kept]]
            self._sides[number] = side.some(kept, of)
        self._records, self._made = records, made
        is_used = np.zeros(self._matched_by.capacity, np.bool_)
        for side in self._sides:
            is_used[side.order.rows()[0]] = True
        used = self._matched_by.index.live_slots()
        self._matched_by.release(used[~is_used[used]])
        self._matched_by.trim()
        self._needed_before = sum(map(len, self._sides)) + len(self._matched_by.index)

    def _is_needed(self, number: int, times: Ints) -> Mask:
        """Return which rows of a side wait, or may be partners of rows that wait or come."""
        found = self._is_from(times)
        if number == 0 or self._final_ns in (watermark.NONE, watermark.END):
            return found
        partners: Mask = times >= settled_ns(self._final_ns, -self._node.lo_ns)
        return partners | found if self._node.shows_right else partners

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        keys = self.keys.index.nbytes + self._matched_by.index.nbytes + self._records.nbytes
        slots = self._ends.nbytes + sum(of.nbytes for of in (*self._numbers, self._made))
        return sum(side.nbytes for side in self._sides) + keys + slots + self.column.nbytes

    # --- snapshots: of the join alone ---

    def load(self, table: pa.Table, watermark_ns: int) -> None:
        """Show the rows that the join holds, which was loaded before."""
        del table, watermark_ns
        self._final_ns = self._join.watermark_ns
        for number, held in enumerate(self._join.dump()):
            for rows in held.combine_chunks().to_batches():
                self._take([rows, None] if number == 0 else [None, rows])


def _keyed(side: EagerSide, first: int) -> tuple[Ints, Ints]:
    """Return the slots and times of the rows of a side from a number on."""
    return side.rows.slots[first:], side.rows.times[first:]


def _made(counts: Ints, *, pairs: bool, alone: bool) -> Ints:
    """Return how many rows there are of rows with so many partners."""
    made = counts.copy() if pairs else np.zeros_like(counts)
    if alone:
        made[counts == 0] = 1
    return made


def _either(ours: Ints, left: Ints, theirs: Ints, right: Ints) -> Ints:
    """Return values of rows on the left, and where there is none, of rows on the right."""
    found = np.zeros(len(left), np.int64)
    is_left = left >= 0
    found[is_left] = ours[left[is_left]]
    found[~is_left] = theirs[right[~is_left]]
    return found

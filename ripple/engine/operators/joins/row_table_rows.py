"""The rows of an as-of join from their reading on, corrected by each better match."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.engine.kernels.columns import Columns
from ripple.engine.kernels.keyed import Keyed
from ripple.engine.kernels.row_order import Near, RowOrder
from ripple.engine.kernels.stored import Stored, gathered
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.engine.operators.held_rows import PLACE, SLOT, TIME
from ripple.engine.operators.joins.eager_rows import EagerRows
from ripple.engine.operators.joins.join_side import key_slots
from ripple.engine.operators.passed_rows import Numbers, Parts
from ripple.engine.operators.result_rows import ShownField, typed_column
from ripple.engine.operators.rows import Rows
from ripple.engine.snapshots.slot_arrays import grown
from ripple.model.schema.exported import as_arrow
from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ripple.engine.graph.node import Graph
    from ripple.engine.operators.joins.asof_rows import AsofRows
    from ripple.engine.operators.joins.join_side import JoinSide
    from ripple.model.pipeline.nodes import RowTable
    from ripple.model.schema.exported import Made

    Ints = npt.NDArray[np.int64]

_UNNEEDED_MAX = 4096
_NONE = np.empty(0, np.int64)


class RowTableRows(EagerRows):
    """The rows of the left side until they are final, each with its match so far.

    Its state follows from the rows that the join holds, so a snapshot has none. Invariants between
    stabilizations: ``_left`` and ``_right`` have the rows of both sides from the marks of the join
    on, and of the right side those before that may still match; ``_slot_of`` has per row of
    ``_left`` its slot in ``column``, -1 once it left, and ``_number_of`` the row of each slot;
    ``_ends`` has the slots of the rows that are not final, by their times.
    """

    def __init__(self, graph: Graph, fold: RowTable, join: AsofRows) -> None:
        """Show the rows of ``join``."""
        super().__init__(graph, fold, join)
        self._join, self._node = join, join.node
        self._left, self._right = (
            Stored(side.held.schema.append(pa.field(SLOT, pa.int64())), Parts)
            for side in join.sides
        )
        self._waiting, self._others, self._ends = RowOrder(), RowOrder(), RowOrder()
        node = self._node
        self._near = Near(node.strategy, is_strict=node.is_strict, tolerance_ns=node.tolerance_ns)
        self._schema = pa.schema(arrow_fields((*node.left_fields, *node.added)))
        self._mine: Sequence[str] = [field.name for field in node.left_fields]
        self._theirs: Sequence[str] = [field.name for field in node.right_fields]
        shown = [] if fold.steps else self.result_rows.names
        self._shown = [self._shown_field(name) for name in shown]
        self._slot_of = Numbers()
        self._number_of = _NONE
        self._needed_before = 0

    def _shown_field(self, name: str) -> tuple[Stored, str, ShownField, bool]:
        """Return where a field of the rows is: the rows of its side, its name there."""
        shown = self.result_rows.shown_field(name)
        if name in self._mine:
            return self._left, name, shown, True
        theirs = dict(zip((one.name for one in self._node.added), self._theirs, strict=True))
        return self._right, theirs[name], shown, False

    def settle(self, watermark_ns: int) -> None:
        """Take the new rows of both sides, and show those with another match."""
        del watermark_ns
        left, right = (side.take_news() for side in self._join.sides)
        touched = []
        if right is not None:
            touched.append(self._touched_by(*self._add_right(right)))
        if left is not None:
            touched.append(self._add_left(left))
        if len(touched) == 1:
            self._show_rows(touched[0] if right is None else np.unique(touched[0]))
        elif touched:
            self._show_rows(np.unique(np.concatenate(touched)))
        self._end()

    # --- rows that come ---

    def _add_left(self, rows: pa.RecordBatch | Made) -> Ints:
        """Take rows of the left side; return their numbers."""
        slots, times, places, numbers = self._stored(self._left, rows, self._join.left)
        keyed = slots >= 0
        self._waiting.add(slots[keyed], times[keyed], places[keyed], numbers[keyed])
        found = self._slots_of(0, rows, places)
        self._number_of = grown(self._number_of, self.keys.capacity, -1)
        self._number_of[found] = numbers
        self._slot_of.add(found)
        self._ends.add(np.zeros_like(found), times, places, found)
        return numbers

    def _add_right(self, rows: pa.RecordBatch | Made) -> tuple[Ints, Ints, Ints]:
        """Take rows of the right side; return their slots, times and places."""
        slots, times, places, numbers = self._stored(self._right, rows, self._join.right)
        self._others.add(slots, times, places, numbers)
        return slots, times, places

    def _stored(
        self, stored: Stored, rows: pa.RecordBatch | Made, side: JoinSide
    ) -> tuple[Ints, Ints, Ints, Ints]:
        """Keep rows of a side; return the slots of their keys, times, places and numbers."""
        columns, count = Columns(rows, side.held.layout), rows.num_rows
        if columns.nullable(side.names):
            slots = key_slots(self._matched_by, as_arrow(rows), side.names)
        else:
            slots = Keyed(self._matched_by, side.names).slots(Rows(columns, count))
        numbers = stored.count + np.arange(count)
        names = side.held.schema.names
        lent = columns.lent_each(names)
        held = [
            columns[name] if one is None else one for name, one in zip(names, lent, strict=True)
        ]
        stored.add([*held, slots], count)
        times, places = (np.asarray(columns.lent(name)) for name in (TIME, PLACE))
        return slots, times, places, numbers

    def _touched_by(self, slots: Ints, times: Ints, places: Ints) -> Ints:
        """Return the waiting rows that may match new rows of the right side."""
        return self._others.touched(slots, times, places, self._waiting, self._near)

    # --- rows as they are ---

    def _show_rows(self, numbers: Ints) -> None:
        """Let rows show their present matches."""
        slots = self._slot_of.values[numbers]
        self._show(slots[slots >= 0])

    def results(self, slots: Ints) -> tuple[Ints, dict[str, Any], dict[int, str]]:
        """Return (slots of rows, their fields by name, unreadable ones: none)."""
        slots, numbers, matches = self._matched(slots)
        parts = [(self._left, self._mine, numbers), (self._right, self._theirs, matches)]
        made = gathered(self._schema, len(slots), parts).arrow()
        return slots, dict(zip(self._schema.names, made.columns, strict=True)), {}

    def typed(self, slots: Ints) -> tuple[Ints, list[Any], list[Any]]:
        """Return (slots of rows, their fields as a column takes them, masks): no steps follow."""
        slots, numbers, matches = self._matched(slots)
        values, masks = [], []
        for rows, name, shown, is_mine in self._shown:
            at = numbers if is_mine else matches
            found = rows.values(name, at)
            if found is None:
                made = gathered(shown.schema, len(at), [(rows, [name], at)]).arrow()
                found = typed_column(made.column(0), *shown.kind)
            values.append(found[0])
            masks.append(found[1])
        return slots, values, masks

    def _matched(self, slots: Ints) -> tuple[Ints, Ints, Ints]:
        """Return the slots with a row, and their rows of both sides."""
        numbers = self._number_of[slots]
        left = self._left
        matches = self._matches(left.words(SLOT, numbers), left.words(TIME, numbers))
        if self._node.how == "inner":
            there = matches >= 0
            slots, numbers, matches = slots[there], numbers[there], matches[there]
        return slots, numbers, matches

    def _matches(self, slots: Ints, times: Ints) -> Ints:
        """Return which rows of the right side match at these keys and times, -1 for none."""
        node, found = self._node, self._others.matches(slots, times, self._near)
        if node.deleted is not None:
            schema = pa.schema([self._right.schema.field(node.deleted.name)])
            mark = gathered(schema, len(found), [(self._right, schema.names, found)]).arrow()
            is_none = mark.column(0).fill_null(False)
            found[is_none.to_numpy(zero_copy_only=False)] = -1
        return found

    # --- rows that leave ---

    def _end(self) -> None:
        """Note the rows that the join has given: they stay as they are."""
        if self._join.watermark_ns == watermark.END:
            over, self._ends = self._ends.rows()[2], RowOrder()
        else:
            over = self._ends.take_below(self._join.watermark_ns)
        if len(over):
            over = over[np.argsort(self._number_of[over])]
            self._over = np.concatenate([self._over, over])

    def free(self, expired: Ints) -> None:
        """Free these slots, and the rows of the right side that match nothing any more."""
        if len(expired):
            self.uncomputable.finalize(expired)
            self.column.retire(expired)
            self._slot_of.values[self._number_of[expired]] = -1
            self._number_of[expired] = -1
            self.keys.release(expired)
        held = self._left.count + self._right.count + len(self._matched_by.index)
        if held > 2 * self._needed_before + _UNNEEDED_MAX:
            self._drop()

    def _drop(self) -> None:
        """Drop the rows no longer needed, and the keys without a row."""
        live = np.flatnonzero(self._slot_of.values >= 0)
        slots = self._slot_of.values[live]
        self._waiting = self._waiting.renumbered(_renumbering(live, self._left.count))
        self._left.keep(live)
        self._slot_of = Numbers()
        self._slot_of.add(slots)
        self._number_of[slots] = np.arange(len(live))
        needed = self._needed()
        self._others = self._others.renumbered(_renumbering(needed, self._right.count))
        self._right.keep(needed)
        is_used = np.zeros(self._matched_by.capacity, np.bool_)
        is_used[self._waiting.rows()[0]] = is_used[self._right.words(SLOT)] = True
        used = self._matched_by.index.live_slots()
        self._matched_by.release(used[~is_used[used]])
        self._matched_by.trim()
        self._needed_before = len(live) + len(needed) + len(self._matched_by.index)

    def _needed(self) -> Ints:
        """Return which rows of the right side may still match: as many as the join keeps."""
        slots, times, numbers = self._others.rows()
        needed = times >= self._join.oldest_ns
        if self._node.strategy == "backward" and len(numbers):
            known_ns = self._join.known_ns
            is_last = np.append(slots[1:] != slots[:-1], True)
            is_last[:-1] |= times[1:] >= known_ns
            needed &= (times >= known_ns) | is_last
        return np.sort(numbers[needed])

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        orders = self._waiting.nbytes + self._others.nbytes + self._ends.nbytes
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


def _renumbering(kept: Sequence[int] | Ints, count: int) -> Ints:
    """Return the new number of each row, -1 for a dropped one."""
    found = np.full(count, -1)
    found[kept] = np.arange(len(kept))
    return found

"""The rows of an as-of join from their reading on, corrected by each better match."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.engine.kernels.open_rows import OpenRows
from ripple.engine.kernels.row_order import Near
from ripple.engine.kernels.stored import Stored, gathered
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.engine.operators.held_rows import IDENTITY, PLACE, SLOT, TIME
from ripple.engine.operators.joins.eager_rows import EagerRows
from ripple.engine.operators.passed_rows import Parts
from ripple.engine.operators.result_rows import ShownField, typed_column
from ripple.model.keys.space import PairKeys
from ripple.model.pipeline.nodes import FLAT_ROWS_MAX
from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ripple.engine.graph.node import Graph
    from ripple.engine.operators.joins.asof_rows import AsofRows
    from ripple.model.pipeline.nodes import RowTable

    Ints = npt.NDArray[np.int64]

_UNNEEDED_MAX = 4096


class RowTableRows(EagerRows):
    """The rows of the left side until they are final, each with its match so far.

    Its state follows from the rows that the join holds, so a snapshot has none. Invariants between
    stabilizations: ``_rows`` has the rows of both sides from the marks of the join on, and of the
    right side those before that may still match; each of the left side has a slot in ``column``.
    """

    def __init__(self, graph: Graph, fold: RowTable, join: AsofRows) -> None:
        """Show the rows of ``join``."""
        super().__init__(graph, fold, join)
        self._join, self._node = join, join.node
        join.stay_unread()
        node, left, right = self._node, *(side.held.rows.schema for side in join.sides)
        self._schema = pa.schema(arrow_fields((*node.left_fields, *node.added)))
        self._mine: Sequence[str] = [field.name for field in node.left_fields]
        self._theirs: Sequence[str] = [field.name for field in node.right_fields]
        shown = [] if fold.steps else self.result_rows.names
        self._shown = [self._shown_field(name) for name in shown]
        self._rows = OpenRows(
            Stored(left, Parts),
            Stored(right, Parts),
            (SLOT, TIME, PLACE),
            Near(node.strategy, is_strict=node.is_strict, tolerance_ns=node.tolerance_ns),
            is_inner=node.how == "inner",
            deleted=None if node.deleted is None else node.deleted.name,
            shown=[(is_mine, name) for is_mine, name, _ in self._shown],
            typed=self._typed_field,
        )
        self._needed_before = 0

    def _shown_field(self, name: str) -> tuple[bool, str, ShownField]:
        """Return whether a field of the rows is of the left side, its name there, and its type."""
        shown = self.result_rows.shown_field(name)
        if name in self._mine:
            return True, name, shown
        theirs = dict(zip((one.name for one in self._node.added), self._theirs, strict=True))
        return False, theirs[name], shown

    def settle(self, watermark_ns: int) -> None:
        """Take the new rows of both sides, and show those with another match."""
        del watermark_ns
        left, right = (side.held.new_count() for side in self._join.sides)
        if right:
            self._take_right(right)
        if left:
            self._take_left(left)
        if left or right:
            self._show_changed()
        self._end()

    # --- rows that come ---

    def _take_left(self, count: int) -> None:
        """Take the last rows of the left side, each with a slot by its origin."""
        self._take(0, count)
        rows, keys = self._rows, self.keys
        places = rows.places()
        origin = None if self._finals[0] else self._join.only_origin(places)
        if origin is None:
            identities = rows.left.words(IDENTITY)[-count:] if self._finals[0] else None
            slots = keys.slots(self._origins_at(0, places, identities))
            keys.adopt(slots)
            rows.show_at(slots, keys.capacity)
            return
        assert isinstance(keys, PairKeys)
        assert isinstance(keys.left, PairKeys), "a key is an input, an offset and an index"
        name, base, inputs = origin
        names, records = keys.left.left.index, keys.left.index
        rows.show_by_origin(name.encode(), names, records, keys.index, base, inputs, FLAT_ROWS_MAX)

    def _take_right(self, count: int) -> None:
        """Take the last rows of the right side, and note their possible matches."""
        self._take(1, count)
        self._look()

    def _take(self, side: int, count: int) -> None:
        """Take the last rows of a side, as it holds them, with the slots of keys here."""
        held, of, into = self._join.sides[side].held.rows, self._join.keys, self._matched_by
        if len(into.fields) < 2:
            self._rows.take(bool(side), held, count, of.index, into.index, None)
            return
        there = held.words(SLOT, np.arange(held.count - count, held.count))
        slots, keyed = np.full(count, -1, np.int64), there >= 0
        slots[keyed] = into.slots(of.arrays(there[keyed]))
        into.adopt(slots[keyed])
        self._rows.take(bool(side), held, count, None, None, slots)

    def _look(self) -> None:
        """Note the left rows that may match new right rows."""
        self._rows.look()

    # --- rows as they are ---

    def _show_changed(self) -> None:
        """Let the noted rows show their present matches."""
        if self.fold.steps:
            self._show(self._rows.changed())
        else:
            self._rows.show(self.column)

    def results(self, slots: Ints) -> tuple[Ints, dict[str, Any], dict[int, str]]:
        """Return (slots of rows, their fields by name, unreadable ones: none)."""
        rows = self._rows
        slots, numbers, matches = rows.matched(slots)
        parts = [(rows.left, self._mine, numbers), (rows.right, self._theirs, matches)]
        made = gathered(self._schema, len(slots), parts).arrow()
        return slots, dict(zip(self._schema.names, made.columns, strict=True)), {}

    def _typed_field(self, field: int, numbers: Ints) -> tuple[Any, Any]:
        """Return values and masks of a field, by the rows of its side: -1 for null."""
        is_mine, name, shown = self._shown[field]
        rows = self._rows.left if is_mine else self._rows.right
        made = gathered(shown.schema, len(numbers), [(rows, [name], numbers)]).arrow()
        return typed_column(made.column(0), *shown.kind)

    # --- rows that leave ---

    def _end(self) -> None:
        """Note the rows that the join is about to give: they stay as they are."""
        mark_ns = self._join.watermark_ns
        over = self._rows.end_below(mark_ns, mark_ns == watermark.END)
        if len(over):
            self._over = np.concatenate([self._over, over]) if len(self._over) else over

    def free(self, expired: Ints) -> None:
        """Free these slots, and the rows of the right side that match nothing any more."""
        if len(expired):
            self._release(expired)
            self._rows.leave(expired)
        if self._held > 2 * self._needed_before + _UNNEEDED_MAX:
            self._drop()

    @property
    def _held(self) -> int:
        """The held rows and keys."""
        return self._rows.left.count + self._rows.right.count + len(self._matched_by.index)

    def _drop(self) -> None:
        """Drop the rows no longer needed, as many as the join keeps, and the keys without a row."""
        join, keys = self._join, self._matched_by
        is_backward = self._node.strategy == "backward"
        is_used = self._rows.drop(join.oldest_ns, join.known_ns, is_backward, keys.capacity)
        live = keys.index.live_slots()
        keys.release(live[~is_used[live]])
        keys.trim()
        self._needed_before = self._held

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        keys = self.keys.index.nbytes + self._matched_by.index.nbytes
        return self._rows.nbytes + keys + self.column.nbytes

    # --- snapshots: of the join alone ---

    def load(self, table: pa.Table, watermark_ns: int) -> None:
        """Show the rows that the join holds, which was loaded before."""
        del table, watermark_ns
        left, right = (side.held.rows.count for side in self._join.sides)
        self._take_right(right)
        self._take_left(left)
        self._show_changed()

"""Rows from their reading on, of joins and of scans."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.engine.graph.column import InputColumn
from ripple.engine.kernels.row_order import RowOrder
from ripple.engine.operators.held_rows import IDENTITY, PLACE
from ripple.engine.operators.result_rows import ResultRows
from ripple.engine.operators.uncomputable import UncomputableRows
from ripple.engine.snapshots.ledger import Ledger
from ripple.engine.snapshots.stateless import Stateless
from ripple.model.keys.space import key_space
from ripple.model.pipeline.waiting_nodes import IntervalJoin, StreamJoin
from ripple.model.window import watermark

if TYPE_CHECKING:
    import numpy.typing as npt

    from ripple.engine.graph.node import Graph
    from ripple.engine.operators.book_scan_rows import BookScanRows
    from ripple.engine.operators.joins.stream_join_rows import StreamJoinRows
    from ripple.engine.operators.step_scan_rows import StepScanRows
    from ripple.model.pipeline.nodes import Fold, RowTable
    from ripple.model.schema.types import Field

    Ints = npt.NDArray[np.int64]

_NONE = np.empty(0, np.int64)


class EagerRows(ABC):
    """A table whose rows follow from those that a join holds, so that a snapshot has none."""

    frees = True

    def __init__(
        self, graph: Graph, fold: RowTable, join: StreamJoinRows | StepScanRows | BookScanRows
    ) -> None:
        """Make an empty table of the rows of ``join``."""
        self.fold: Fold = fold
        self.result_rows = ResultRows(fold)
        self.keys = key_space(fold.key)
        self.column = InputColumn(graph, (), self.keys, self.result_rows.column_fields, fold.name)
        self.uncomputable = UncomputableRows(self.keys)
        # A table without rows says that it was there.
        self.ledger = Ledger(key_space(fold.key), Stateless(fold.key))
        self._over = _NONE
        node = join.node
        self._matched_by = key_space(node.key_of(0) if isinstance(node, StreamJoin) else node.key)
        of_right = node.right_finals if isinstance(node, IntervalJoin) else ""
        self._finals = node.finals, of_right
        self._origins_of = join.origins_of

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields of its rows without the key."""
        return self.result_rows.fields

    def open_keys(self) -> pa.Table:
        """Return the keys of rows that are not final, shown or not; or some fields of them all."""
        names = [field.name for field in self.fold.key]
        return pa.table(self.keys.arrays(self.keys.index.live_slots()), names)

    def _origins(self, side: int, rows: pa.RecordBatch) -> list[pa.Array]:
        """Return the inputs of a side's rows, their offsets and indexes."""
        identities = np.asarray(rows.column(IDENTITY)) if self._finals[side] else None
        return self._origins_at(side, np.asarray(rows.column(PLACE)), identities)

    def _origins_at(self, side: int, places: Ints, identities: Ints | None) -> list[pa.Array]:
        """Return the same by places; identities: for final rows, not known by place."""
        origins = list(self._origins_of(places, identities, self._finals[side]))
        if len(origins) == 1 and len(origins[0][1]) == len(places):
            name, _, offsets, indexes = origins[0]
            return [pa.repeat(name, len(places)), pa.array(offsets), pa.array(indexes)]
        names: list[str] = []
        which = np.zeros(len(places), np.int64)
        offsets, indexes = np.zeros((2, len(places)), np.int64)
        for name, at, their_offsets, their_indexes in origins:
            which[at], offsets[at], indexes[at] = len(names), their_offsets, their_indexes
            names.append(name)
        found = pa.array(names, pa.string()).take(pa.array(which))
        return [found, pa.array(offsets), pa.array(indexes)]

    def _show(self, slots: Ints) -> None:
        """Show the current rows of distinct slots, by halves where one batch is too small."""
        try:
            kept, values, valid, failed = self.result_rows.computed(self.column, self, slots)
        except OverflowError:
            half = len(slots) // 2
            if not half:
                raise
            for some in (slots[:half], slots[half:]):
                self._show(some)
            return
        if len(kept) < len(slots):
            self.column.erase(np.setdiff1d(slots, kept))
        if len(kept):
            self.column.write(kept, values, valid)
        self.uncomputable.note(slots, failed)

    @abstractmethod
    def results(self, slots: Ints) -> tuple[Ints, dict[str, Any], dict[int, str]]:
        """Return (slots of rows, their fields by name, unreadable ones: none)."""

    @abstractmethod
    def settle(self, watermark_ns: int) -> None:
        """Take the new rows of all inputs, and show the changed ones."""

    def expired(self) -> Ints:
        """Return the slots of final rows, once; their last change was reported."""
        over, self._over = self._over, _NONE
        return over

    def _release(self, expired: Ints) -> None:
        """Let final rows stay as they are in all tables behind, and give up their slots."""
        self.uncomputable.finalize(expired)
        self.column.retire(expired)
        self.keys.release(expired)

    @abstractmethod
    def free(self, expired: Ints) -> None:
        """Free these slots, and the rows of both sides that nothing needs any more."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes held."""

    # --- snapshots: of the join alone ---

    @abstractmethod
    def load(self, table: pa.Table, watermark_ns: int) -> None:
        """Show the rows that the join holds, which was loaded before."""


def take_final(ends: RowOrder, mark_ns: int) -> tuple[Ints, RowOrder]:
    """Return the numbers of the rows that a watermark makes final, in order, and the rest."""
    if mark_ns == watermark.END:
        return ends.rows()[2], RowOrder()
    return ends.take_below(mark_ns), ends

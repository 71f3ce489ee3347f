"""Groups of a fold over remote rows: the senders' accumulators, merged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.core.errors import InputError
from ripple.core.row_ops import OP_REMOVE
from ripple.engine.edges.edge_changes import ops_of, those_of
from ripple.engine.edges.window_ends import WindowEnds
from ripple.engine.graph.column import InputColumn
from ripple.engine.kernels.states import States
from ripple.engine.operators.groups import MEMBERS
from ripple.engine.operators.result_rows import ResultRows
from ripple.engine.operators.uncomputable import UncomputableRows
from ripple.engine.snapshots.internal import internal
from ripple.engine.snapshots.ledger import Ledger
from ripple.model.aggregate.parts import Tally
from ripple.model.keys.slots import SlotSet
from ripple.model.keys.space import PairKeys, key_columns, key_space
from ripple.model.schema.types import Field, Int64

if TYPE_CHECKING:
    import numpy.typing as npt

    from ripple.engine.edges.edge_changes import Closes
    from ripple.engine.graph.node import Graph
    from ripple.model.pipeline.nodes import Fold

    Ints = npt.NDArray[np.int64]


_NONE = np.empty(0, np.int64)
SENDER = Field(internal("sender"), Int64())


class RemoteGroups:
    """A fold over rows of several senders, each of which keeps one accumulator a group.

    Which sender has folded which row cannot matter: sums are integers and extremes are taken of
    extremes, and a result is rounded once, after merging.

    Invariants between calls: ``members`` counts per (group, sender) the sender's rows, and zero
    counts wait in ``_emptied`` to be freed; a group with a row that may be stale is in
    ``_touched``.
    """

    frees = True

    def __init__(self, graph: Graph, fold: Fold, senders: int, closes_ns: Closes | None) -> None:
        """Merge groups of ``senders``; closes_ns: if groups end with their windows, when."""
        self.fold = fold
        self.result_rows = ResultRows(fold)
        self.fields = self.result_rows.fields
        self.keys = key_space(fold.key)
        self.column = InputColumn(graph, (), self.keys, self.result_rows.column_fields, fold.name)
        self.uncomputable = UncomputableRows(self.keys)
        self._senders = senders
        self._pairs = PairKeys(self.keys, SENDER)
        self._copies = States(fold.aggregates, retractable=False)
        self._members = Tally()
        self._merged = States(fold.aggregates, retractable=False)
        self.result_rows.lay_out(self._merged)
        self._touched = SlotSet()
        self._emptied: list[Ints] = []
        self._ends = WindowEnds(self.keys, closes_ns)
        self.ledger = Ledger(self._pairs, self)

    def take_in(self, sender: int, rows: pa.RecordBatch, *, whole: bool) -> None:
        """Take a sender's changes, or its whole table. Raises InputError with nothing changed."""
        rows = self._ends.open_of(rows)
        groups = self._groups(rows)
        pairs = self._pairs.slots_of(groups, np.full(len(groups), sender))
        self._pairs.adopt(pairs)
        self._reserve()
        touched = np.sort(pairs)
        if (touched[1:] == touched[:-1]).any():
            self._emptied.append(np.unique(pairs[self._members.result(pairs) == 0]))
            raise InputError(f"fold {self.fold.name!r}: a sender's changes name a group twice")
        is_set = ops_of(rows) != OP_REMOVE
        emptied = pairs[~is_set]
        if whole:
            missing = np.setdiff1d(self._of(sender), touched)
            emptied, touched = np.union1d(emptied, missing), np.union1d(touched, missing)
        self.ledger.change(touched)
        self._members.clear(touched)
        self._copies.clear(touched)
        self._emptied.append(emptied)
        self._load(pairs[is_set], pa.table(those_of(rows, is_set)))
        self._touched.add(self._pairs.index.pairs_at(touched)[0], self.keys.capacity)

    def _groups(self, rows: pa.RecordBatch | pa.Table) -> Ints:
        columns = [_whole(rows.column(field.name)) for field in self.keys.fields]
        groups = self.keys.slots(columns or [np.empty(rows.num_rows)])
        self.keys.adopt(groups)
        self._ends.arm(groups, rows)
        return groups

    def _reserve(self) -> None:
        capacity = self._pairs.capacity
        self._copies.reserve(capacity)
        if capacity > self._members.slots:
            self._members.resize(capacity)

    def _load(self, pairs: Ints, table: pa.Table) -> None:
        self._members.decode(pairs, table.column(MEMBERS).to_numpy())
        self._copies.load(pairs, table)

    def _of(self, sender: int) -> Ints:
        """Return the pairs of a sender."""
        pairs = self._pairs.index.live_slots()
        own: Ints = pairs[self._pairs.index.pairs_at(pairs)[1] == sender]
        return own

    def _of_groups(self, groups: Ints) -> tuple[Ints, Ints]:
        """Return (groups, pairs): every sender's part of these groups."""
        index = self._pairs.index
        found = [
            index.slots_of_known_pairs(groups, np.full(len(groups), sender))
            for sender in range(self._senders)
        ]
        pairs = np.concatenate(found)
        known = pairs >= 0
        return np.tile(groups, self._senders)[known], pairs[known]

    def settle(self, watermark_ns: int) -> None:
        """Merge the groups that changed; note which are over at ``watermark_ns``."""
        self._ends.reach(watermark_ns)
        groups = self._touched.take()
        if not len(groups):
            return
        into, pairs = self._of_groups(groups)
        has_rows = self._members.result(pairs) > 0
        if not has_rows.all():
            into, pairs = into[has_rows], pairs[has_rows]
        # Beyond the groups: merging empties its sources, and the copies must stay.
        scratch = self.keys.capacity + np.arange(len(pairs))
        self._merged.reserve(self.keys.capacity + len(pairs))
        self._merged.clear(groups)
        self._merged.load(scratch, pa.table(self._copies.dump(pairs)))
        self._merged.merge(into, scratch)
        self._merged.clear(scratch)
        is_live = np.isin(groups, into)
        self.column.erase(groups[~is_live])
        self.uncomputable.forget(groups[~is_live])
        live = groups[is_live]
        if len(live):
            failed = self.result_rows.show(self.column, self._merged, live)
            self.uncomputable.note(live, failed)

    def expired(self) -> Ints:
        """Return the groups that are over, once."""
        return self._ends.take()

    def free(self, expired: Ints) -> None:
        """Free these groups, and the pairs of senders without rows of a group."""
        if not self._emptied and not len(expired):
            return
        emptied = np.unique(np.concatenate((expired[:0], *self._emptied)))
        self._emptied.clear()
        gone = np.union1d(emptied[self._members.result(emptied) == 0], self._of_groups(expired)[1])
        if not len(gone):
            return
        self.ledger.free(gone)
        self.uncomputable.finalize(expired)
        groups, lost = np.unique(self._pairs.index.pairs_at(gone)[0], return_counts=True)
        held = np.bincount(np.searchsorted(groups, self._of_groups(groups)[0]), None, len(groups))
        over = groups[held == lost]
        self._ends.forget(over)
        self.column.retire(over)
        self._merged.clear(over)
        self._copies.clear(gone)
        self._members.clear(gone)
        self._pairs.release(gone)

    # --- snapshots ---

    def dump_rows(self, slots: Ints) -> dict[str, pa.Array]:
        """Return the senders' parts of groups: key fields, sender, members, accumulators."""
        return {
            **key_columns(self._pairs, slots),
            MEMBERS: pa.array(self._members.result(slots)),
            **self._copies.dump(slots),
        }

    def dump_marks(self, slots: Ints) -> dict[str, pa.Array]:
        """Return further columns: none."""
        del slots
        return {}

    @property
    def columns(self) -> list[str]:
        """The names of dumped columns, in the order of a snapshot's table."""
        return list(self.dump_rows(_NONE))

    def load(self, table: pa.Table, watermark_ns: int) -> None:
        """Load dumped rows, and show them."""
        groups = self._groups(table)
        pairs = self._pairs.slots_of(groups, table.column(SENDER.name).to_numpy())
        self._pairs.adopt(pairs)
        self._reserve()
        self._load(pairs, table)
        self._touched.add(groups, self.keys.capacity)
        self.settle(watermark_ns)

    @property
    def nbytes(self) -> int:
        """Bytes held by copies, merged state, shown rows and keys."""
        keys = self._pairs.index.nbytes + self.keys.index.nbytes
        states = self._copies.nbytes + self._merged.nbytes
        return states + self.column.nbytes + keys + self._touched.nbytes + self.ledger.nbytes


def _whole(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column

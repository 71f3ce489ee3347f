"""Result rows to result rows: a fold over the rows of another fold, added and removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ripple.aggregate.parts import Tally
from ripple.engine.internal import as_now, internal
from ripple.engine.ledger import Ledger
from ripple.engine.result_rows import ResultRows
from ripple.engine.rows import Rows
from ripple.engine.snapshot import SnapshotError
from ripple.engine.uncomputable import Failure, UncomputableRows
from ripple.fold.feed import Feed
from ripple.fold.states import States
from ripple.graph.column import Column, DerivedColumn
from ripple.keys.slots import SlotSet
from ripple.keys.space import key_space

if TYPE_CHECKING:
    from ripple.graph.node import Graph, Node
    from ripple.pipeline.plan import Fold

Ints = npt.NDArray[np.int64]

_NONE = np.empty(0, np.int64)
_MEMBERS = internal("members")


class TableFold(DerivedColumn):
    """A keyed view of a keyed view: a changed row is taken out of its group and put in again.

    A row of the parent that cannot be folded is in no group. Invariants between stabilizes:
    _members counts per group g the rows of the parent that are in it, those retired from the
    parent included; ``_feed`` knows the group of each present row; ``unfolded`` has the
    slots of the parent whose present row is in no group. A group without members has no row and no
    slot.
    """

    def __init__(self, graph: Graph, fold: Fold, parent: Column) -> None:
        """Fold the rows of ``parent``."""
        self.fold = fold
        self.result_rows = ResultRows(fold)
        space = key_space(fold.key)
        super().__init__(graph, [parent], space, self.result_rows.column_fields, fold.name)
        self.states = States(fold.aggregates, retractable=True)
        self.result_rows.lay_out(self.states)
        needed = {field.name for field in fold.key}
        for aggregate in fold.aggregates:
            needed.update(name for bound in aggregate.inputs for name in bound.columns)
        self._feed = Feed(parent, needed)
        self._members = Tally()
        self._touched = SlotSet()
        self.uncomputable = UncomputableRows(self.keys)
        self.unfolded = UncomputableRows(parent.keys)
        self.ledger = Ledger(self.keys, self)
        self._empty: list[Ints] = []
        # With the window among the key, a group is over when its window is.
        self._ends_with_window = any(field.name == "window_start_ns" for field in fold.key)

    def parent_changed_now(self, parent: Node) -> None:
        """Take changed rows out of their groups as they were and put them in as they are."""
        del parent
        groups, columns = self._feed.gone()
        if len(groups):
            self._change(groups, Rows(columns, len(groups)), remove=True)
        slots, columns = self._feed.come()
        rows = Rows(columns, len(slots))
        if rows.count:
            rows.reject(self.states.failed(rows), self.fold.name)
        failed = {int(slots[bad.row]): Failure.of(bad.step, bad.reason) for bad in rows.rejected}
        if rows.count:
            chosen = slots if rows.origin is None else slots[rows.origin]
            self._change(self._groups(chosen, rows), rows, remove=False)
        if failed or len(self.unfolded):
            self.unfolded.note(self._feed.changed(), failed)

    def _groups(self, slots: Ints, rows: Rows) -> Ints:
        """Return the group of each row, making new ones."""
        columns = [rows.columns.key(field.name) for field in self.fold.key]
        groups = self.keys.slots(columns or [slots])
        self.keys.adopt(groups)
        self._reserve()
        self._feed.put(slots, groups)
        return groups

    def _reserve(self) -> None:
        self.states.reserve(self.keys.capacity)
        if self.keys.capacity > self._members.slots:
            self._members.resize(self.keys.capacity)

    def _change(self, groups: Ints, rows: Rows, *, remove: bool) -> None:
        self.ledger.change(groups)
        (self._members.remove if remove else self._members.add)(groups)
        self.states.change(groups, rows, remove=remove)
        self._touched.add(groups, self.keys.capacity)

    def recompute_now(self) -> None:
        """Show the groups whose members changed."""
        touched = self._touched.take()
        empty = self._members.result(touched) == 0
        live = touched
        if empty.any():
            self.drop(touched[empty])
            self.uncomputable.forget(touched[empty])
            self._empty.append(touched[empty])
            live = touched[~empty]
        if len(live) and self.result_rows.shown_as_they_are(self, self.states, live, lambda _: {}):
            self.uncomputable.note(live, {})
        elif len(live):
            kept, values, valid, failed = self.result_rows.computed(
                self, self.states, live, lambda _: {}
            )
            if len(kept) < len(live):
                self.drop(np.setdiff1d(live, kept))
            self.put(kept, values, valid)
            self.uncomputable.note(live, failed)

    def expired(self, retired: Ints) -> Ints:
        """Return the groups whose window is over; ``retired`` are final slots of the parent."""
        groups = self._feed.retire(retired)
        return groups if self._ends_with_window else groups[:0]

    def free(self, expired: Ints) -> None:
        """Free these groups, and those that have no rows left."""
        if not self._empty and not len(expired):
            return
        empty = np.unique(np.concatenate((expired[:0], *self._empty)))
        self._empty.clear()
        gone = np.union1d(expired, empty[self._members.result(empty) == 0])
        if len(gone):
            self.ledger.free(gone)
            self.uncomputable.finalize(expired)
            self.retire(gone)
            self.states.clear(gone)
            self._members.clear(gone)
            self.keys.release(gone)

    # --- snapshots ---

    def dump_rows(self, slots: Ints) -> dict[str, pa.Array]:
        """Return the state of groups as Arrow columns: key fields, members, accumulators."""
        keys = zip(self.keys.fields, self.keys.arrays(slots), strict=True)
        return {
            **{field.name: array for field, array in keys},
            _MEMBERS: pa.array(self._members.result(slots)),
            **self.states.dump(slots),
        }

    def dump_marks(self, slots: Ints) -> dict[str, pa.Array]:
        """Return what else there is to know of groups: nothing."""
        del slots
        return {}

    @property
    def columns(self) -> list[str]:
        """The names of what is dumped, in the order of a snapshot's table."""
        return list(self.dump_rows(_NONE))

    def load(self, table: pa.Table) -> None:
        """Take over what was dumped; the parent's rows were put in place before."""
        table = as_now(table, self.columns)
        columns = [table.column(field.name).combine_chunks() for field in self.keys.fields]
        groups = self.keys.slots(columns or [np.empty(table.num_rows)])
        self.keys.adopt(groups)
        self._reserve()
        self.states.clear(groups)
        self.states.load(groups, table)
        every = np.arange(self._members.slots)
        in_place = self._members.result(every)
        self._members.clear(every)
        self._members.decode(groups, table.column(_MEMBERS).to_numpy())
        if (self._members.result(every) < in_place).any():
            raise SnapshotError(
                f"the state of fold {self.fold.name!r} has fewer members than there are rows below"
            )
        self._touched.add(groups, self.keys.capacity)
        self.set_dirty()

"""Result rows to result rows: a fold over the rows of another fold, added and removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ripple.engine.event_fold import key_array
from ripple.engine.internal import as_now, internal
from ripple.engine.ledger import Ledger
from ripple.engine.result_rows import ResultRows
from ripple.engine.rows import Rows
from ripple.engine.slot_arrays import grown
from ripple.engine.snapshot import SnapshotError
from ripple.engine.uncomputable import Failure, UncomputableRows
from ripple.expression.bound import Values
from ripple.fold.states import States
from ripple.graph.column import Column, DerivedColumn
from ripple.keys.slots import SlotSet
from ripple.keys.space import key_space

if TYPE_CHECKING:
    from ripple.graph.node import Graph, Node
    from ripple.pipeline.plan import Fold
    from ripple.schema.types import Field

Ints = npt.NDArray[np.int64]

_NONE = np.empty(0, np.int64)
_MEMBERS = internal("members")


class TableFold(DerivedColumn):
    """A keyed view of a keyed view: a changed row is taken out of its group and put in again.

    A row of the parent that cannot be folded is in no group. Invariants between stabilizes:
    _members[g] rows of the parent are in group g, those retired from the parent included;
    _group_of[s] is the group of the parent's present row at slot s, or -1; ``unfolded`` has the
    slots of the parent whose present row is in no group. A group without members has no row and no
    slot.
    """

    def __init__(self, graph: Graph, fold: Fold, parent: Column, fields: tuple[Field, ...]) -> None:
        """Fold the rows of ``parent``, whose fields beside its key are ``fields``."""
        self.fold = fold
        self.result_rows = ResultRows(fold)
        space = key_space(fold.key)
        super().__init__(graph, [parent], space, self.result_rows.column_fields, fold.name)
        self.states = States(fold.aggregates, retractable=True)
        self.result_rows.lay_out(self.states)
        self._parent = parent
        self._parent_fields = fields
        self._needed = {field.name for field in fold.key}
        for aggregate in fold.aggregates:
            self._needed.update(name for bound in aggregate.inputs for name in bound.columns)
        self._needs_keys = any(field.name in self._needed for field in parent.keys.fields)
        self._members = np.zeros(0, np.int64)
        self._group_of = np.zeros(0, np.int64)
        self._touched = SlotSet()
        self.uncomputable = UncomputableRows(self.keys)
        self.unfolded = UncomputableRows(parent.keys)
        self.ledger = Ledger(self.keys, self)
        self._empty: list[Ints] = []
        # With the window among the key, a group is over when its window is.
        self._ends_with_window = any(field.name == "window_start_ns" for field in fold.key)

    def parent_changed_now(self, parent: Node) -> None:
        """Take changed rows out of their groups as they were and put them in as they are."""
        assert isinstance(parent, Column)
        slots, was, now = parent.changes()
        self._group_of = grown(self._group_of, parent.keys.capacity, -1)
        removed, added = was.view(np.bool_) & (self._group_of[slots] >= 0), now.view(np.bool_)
        failed: dict[int, Failure] = {}
        if removed.any():
            rows = self._rows(parent, slots, parent.old_rows(), removed)
            gone = slots[removed]
            self._change(self._group_of[gone], rows, remove=True)
            self._group_of[gone] = -1
        if added.any():
            rows = self._rows(parent, slots, parent.rows(slots), added)
            rows.reject(self.states.failed(rows), self.fold.name)
            for bad in rows.rejected:
                failed[int(slots[bad.row])] = Failure.of(bad.step, bad.reason)
            if rows.count:
                chosen = slots if rows.origin is None else slots[rows.origin]
                self._change(self._groups(chosen, rows), rows, remove=False)
        self.unfolded.note(slots, failed)

    def _rows(
        self, parent: Column, slots: Ints, gathered: list[Any], chosen: npt.NDArray[np.bool_]
    ) -> Rows:
        """Return the chosen rows, with the fields that somebody reads."""
        columns: dict[str, Any] = {}
        if self._needs_keys:
            keys = zip(parent.keys.fields, parent.keys.arrays(slots), strict=True)
            columns |= {field.name: array for field, array in keys if field.name in self._needed}
        for field, (values, valid) in zip(self._parent_fields, gathered, strict=True):
            if field.name in self._needed:
                columns[field.name] = Values(
                    values, None if valid is None else valid.view(np.bool_)
                )
        rows = Rows(columns, len(slots))
        rows.keep(chosen)
        return rows

    def _groups(self, slots: Ints, rows: Rows) -> Ints:
        """Return the group of each row, making new ones."""
        columns = [key_array(rows.columns[field.name]) for field in self.fold.key]
        groups = self.keys.slots(columns or [np.empty(len(slots))])
        self.keys.adopt(groups)
        self.states.reserve(self.keys.capacity)
        self._members = grown(self._members, self.keys.capacity, 0)
        self._group_of[slots] = groups
        return groups

    def _change(self, groups: Ints, rows: Rows, *, remove: bool) -> None:
        self.ledger.change(groups)
        np.add.at(self._members, groups, -1 if remove else 1)
        self.states.change(groups, rows, remove=remove)
        self._touched.add(groups, self.keys.capacity)

    def recompute_now(self) -> None:
        """Show the groups whose members changed."""
        touched = self._touched.take()
        empty = self._members[touched] == 0
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
        if not len(retired):
            return retired
        retired = retired[retired < len(self._group_of)]
        groups = self._group_of[retired]
        self._group_of[retired] = -1
        return np.unique(groups[groups >= 0]) if self._ends_with_window else retired[:0]

    def free(self, expired: Ints) -> None:
        """Free these groups, and those that have no rows left."""
        if not self._empty and not len(expired):
            return
        empty = np.unique(np.concatenate((expired[:0], *self._empty)))
        self._empty.clear()
        gone = np.union1d(expired, empty[self._members[empty] == 0])
        if len(gone):
            self.ledger.free(gone)
            self.uncomputable.finalize(expired)
            self.retire(gone)
            self.states.clear(gone)
            self._members[gone] = 0
            self.keys.release(gone)

    # --- snapshots ---

    def dump_rows(self, slots: Ints) -> dict[str, pa.Array]:
        """Return the state of groups as Arrow columns: key fields, members, accumulators."""
        keys = zip(self.keys.fields, self.keys.arrays(slots), strict=True)
        return {
            **{field.name: array for field, array in keys},
            _MEMBERS: pa.array(self._members[slots]),
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
        self.states.reserve(self.keys.capacity)
        self.states.clear(groups)
        self.states.load(groups, table)
        self._members = grown(self._members, self.keys.capacity, 0)
        in_place = self._members.copy()
        self._members[:] = 0
        self._members[groups] = table.column(_MEMBERS).to_numpy()
        if (self._members < in_place).any():
            raise SnapshotError(
                f"the state of fold {self.fold.name!r} has fewer members than there are rows below"
            )
        self._touched.add(groups, self.keys.capacity)
        self.set_dirty()

"""Rows of a keyed view in groups: taken out of where they were, put in where they are now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ripple.aggregate.parts import Tally
from ripple.engine.internal import as_now, internal
from ripple.engine.ledger import Ledger
from ripple.engine.rows import Rows
from ripple.engine.snapshot import SnapshotError
from ripple.engine.uncomputable import Failure, UncomputableRows
from ripple.fold.feed import Feed
from ripple.fold.states import States
from ripple.graph.column import Column, DerivedColumn
from ripple.keys.slots import SlotSet
from ripple.keys.space import key_space

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ripple.graph.node import Graph, Node
    from ripple.pipeline.plan import Fold

Ints = npt.NDArray[np.int64]

_NONE = np.empty(0, np.int64)
MEMBERS = internal("members")


class Groups(DerivedColumn):
    """The accumulators of a fold over the rows of another one; what is made of them, others say.

    A row of the parent that cannot be folded is in no group. Invariants between stabilizes:
    ``members`` counts per group g the rows of the parent that are in it, those retired from the
    parent included; ``_feed`` knows the group of each present row; ``unfolded`` has the
    slots of the parent whose present row is in no group. A group without members has no slot.
    """

    def __init__(
        self, graph: Graph, fold: Fold, parent: Column, fields: Sequence[tuple[str, str, bool]]
    ) -> None:
        """Take in the rows of ``parent``; ``fields`` are those of this column."""
        self.fold = fold
        super().__init__(graph, [parent], key_space(fold.key), fields, fold.name)
        self.states = States(fold.aggregates, retractable=True)
        self.members = Tally()
        self.unfolded = UncomputableRows(parent.keys)
        self.ledger = Ledger(self.keys, self)
        self._feed = Feed(parent, fold.fields_read)
        self._touched = SlotSet()
        self._empty: list[Ints] = []

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
        if self.keys.capacity > self.members.slots:
            self.members.resize(self.keys.capacity)

    def _change(self, groups: Ints, rows: Rows, *, remove: bool) -> None:
        self.ledger.change(groups)
        (self.members.remove if remove else self.members.add)(groups)
        self.states.change(groups, rows, remove=remove)
        self._touched.add(groups, self.keys.capacity)

    def take_touched(self) -> tuple[Ints, Ints]:
        """Return (groups that have members, groups that have none) of those touched, once."""
        touched = self._touched.take()
        empty = self.members.result(touched) == 0
        if not empty.any():
            return touched, touched[:0]
        self._empty.append(touched[empty])
        return touched[~empty], touched[empty]

    def expired(self, retired: Ints) -> Ints:
        """Return the groups whose window is over; ``retired`` are final slots of the parent."""
        groups = self._feed.retire(retired)
        return groups if self.fold.ends_with_window else groups[:0]

    def emptied(self) -> Ints:
        """Return the groups that have no rows left and are not yet freed."""
        if not self._empty:
            return _NONE
        empty = np.unique(np.concatenate(self._empty))
        none_left: Ints = empty[self.members.result(empty) == 0]
        return none_left

    def free(self, expired: Ints) -> None:
        """Free these groups, and those that have no rows left."""
        if not self._empty and not len(expired):
            return
        gone = np.union1d(expired, self.emptied())
        self._empty.clear()
        if len(gone):
            self.ledger.free(gone)
            self.finalize(expired)
            self.retire(gone)
            self.states.clear(gone)
            self.members.clear(gone)
            self.keys.release(gone)

    def finalize(self, expired: Ints) -> None:
        """Take notice that these groups will not change any more and are about to be freed."""

    # --- snapshots ---

    def dump_keys(self, groups: Ints) -> dict[str, pa.Array]:
        """Return the key fields of groups as Arrow columns."""
        keys = zip(self.keys.fields, self.keys.arrays(groups), strict=True)
        return {field.name: array for field, array in keys}

    def dump_rows(self, slots: Ints) -> dict[str, pa.Array]:
        """Return the state of groups as Arrow columns: key fields, members, accumulators."""
        members = pa.array(self.members.result(slots))
        return {**self.dump_keys(slots), MEMBERS: members, **self.states.dump(slots)}

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
        every = np.arange(self.members.slots)
        in_place = self.members.result(every)
        self.members.clear(every)
        self.members.decode(groups, table.column(MEMBERS).to_numpy())
        if (self.members.result(every) < in_place).any():
            raise SnapshotError(
                f"the state of fold {self.fold.name!r} has fewer members than there are rows below"
            )
        self._touched.add(groups, self.keys.capacity)
        self.set_dirty()

"""Rows of a keyed view in groups: taken out of where they were, put in where they are now."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.engine.graph.column import Column, DerivedColumn
from ripple.engine.kernels.feed import Feed, take_touched
from ripple.engine.kernels.states import States
from ripple.engine.operators.rows import Rows
from ripple.engine.operators.uncomputable import Failure, UncomputableRows
from ripple.engine.snapshots.internal import internal
from ripple.engine.snapshots.ledger import Ledger
from ripple.engine.snapshots.snapshot import SnapshotError
from ripple.model.aggregate.parts import Tally
from ripple.model.keys.slots import SlotSet
from ripple.model.keys.space import key_columns, key_space

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ripple.engine.graph.canonical import Form
    from ripple.engine.graph.node import Graph, Node
    from ripple.model.pipeline.nodes import Fold

    Ints = npt.NDArray[np.int64]


_NONE = np.empty(0, np.int64)
MEMBERS = internal("members")


class Groups(DerivedColumn):
    """The accumulators of a fold over the rows of another one; subclasses make rows of them.

    A row of the parent that cannot be folded is in no group. Invariants between stabilizes:
    ``members`` counts per group g the rows of the parent that are in it, those retired from the
    parent included; ``_feed`` knows the group of each present row; ``unfolded`` has the slots of
    the parent with a present row in no group. A group without members has no slot.
    """

    def __init__(
        self,
        graph: Graph,
        fold: Fold,
        parent: Column,
        fields: Sequence[tuple[str, str | Form, bool]],
    ) -> None:
        """Take in the rows of ``parent``; ``fields`` are those of this column."""
        self.fold = fold
        super().__init__(graph, [parent], key_space(fold.key), fields, fold.name)
        self.members = Tally()
        self.states = States(fold.aggregates, retractable=True, members=self.members)
        self.unfolded = UncomputableRows(parent.keys)
        self.ledger = Ledger(self.keys, self)
        self._feed = Feed(parent, fold.fields_read, self.states)
        self._is_plain_total = self._feed.is_plain and not fold.key
        self._touched = SlotSet()
        self.left_empty: list[Ints] = []
        """The groups that had no rows left when they were looked at, and were not yet freed."""

    def parent_changed_now(self, parent: Node) -> None:
        """Take changed rows out of their groups as they were and put them in as they are."""
        del parent
        if self._is_plain_total:
            self._feed.fold_all(self.keys.index, self._touched, self.ledger)
            return
        groups = self._feed.gone()
        if len(groups):
            self._change(groups, self._rows(len(groups)), remove=True)
        slots = chosen = self._feed.come()
        failed: dict[int, Failure] = {}
        if len(slots):
            rows = self._rows(len(slots), with_keys=bool(self.fold.key))
            if rows is not None and self.states.may_fail:
                rows.reject(self.states.failed(rows), self.fold.name)
                failed = {
                    int(slots[bad.row]): Failure.of(bad.step, bad.reason) for bad in rows.rejected
                }
                chosen = slots if rows.origin is None else slots[rows.origin]
            if len(chosen):
                self._change(self._groups(chosen, rows), rows, remove=False)
        if failed or len(self.unfolded):
            self.unfolded.note(self._feed.changed(), failed)

    def _rows(self, count: int, *, with_keys: bool = False) -> Rows | None:
        """Return the rows of the feed, None where they are not needed as columns."""
        if self._feed.is_plain and not with_keys:
            return None
        return Rows(self._feed.columns(), count)

    def _groups(self, slots: Ints, rows: Rows | None) -> Ints:
        """Return the group of each row, making new ones."""
        columns = [] if rows is None else [rows.columns.key(field.name) for field in self.fold.key]
        groups = self.keys.slots(columns or [slots])
        self.keys.adopt(groups)
        self.states.reserve(self.keys.capacity)
        self._feed.put(slots, groups)
        return groups

    def _change(self, groups: Ints, rows: Rows | None, *, remove: bool) -> None:
        if self.ledger.marks:
            self.ledger.change(groups)
        if self._feed.is_plain:
            self._feed.fold(groups, remove=remove)
        else:
            assert rows is not None
            self.states.change(groups, rows, remove=remove)
        self._touched.add(groups, self.keys.capacity)

    def take_touched(self) -> tuple[Ints, Ints]:
        """Return (groups that have members, groups that have none) of those touched, once."""
        live, empty = take_touched(self._touched, self.members)
        if len(empty):
            self.left_empty.append(empty)
        return live, empty

    def expired(self, retired: Ints) -> Ints:
        """Return the groups of windows that are over; ``retired`` are final slots of the parent."""
        groups = self._feed.retire(retired)
        return groups if self.fold.ends_with_window else groups[:0]

    def emptied(self) -> Ints:
        """Return the groups that have no rows left and are not yet freed."""
        if not self.left_empty:
            return _NONE
        empty = np.unique(np.concatenate(self.left_empty))
        none_left: Ints = empty[self.members.result(empty) == 0]
        return none_left

    def free(self, expired: Ints) -> None:
        """Free these groups, and empty ones."""
        if not self.left_empty and not len(expired):
            return
        gone = np.union1d(expired, self.emptied())
        self.left_empty.clear()
        if len(gone):
            self.ledger.free(gone)
            self.finalize(expired)
            self.retire(gone)
            self.states.clear(gone)
            self.keys.release(gone)

    def finalize(self, expired: Ints) -> None:
        """Take notice that these groups will not change any more and are about to be freed."""

    # --- snapshots ---

    def dump_keys(self, groups: Ints) -> dict[str, pa.Array]:
        """Return the key fields of groups as Arrow columns."""
        return key_columns(self.keys, groups)

    def dump_rows(self, slots: Ints) -> dict[str, pa.Array]:
        """Return the state of groups as Arrow columns: key fields, members, accumulators."""
        members = pa.array(self.members.result(slots))
        return {**self.dump_keys(slots), MEMBERS: members, **self.states.dump(slots)}

    def dump_marks(self, slots: Ints) -> dict[str, pa.Array]:
        """Return further columns of groups: none."""
        del slots
        return {}

    @property
    def columns(self) -> list[str]:
        """The names of dumped columns, in the order of a snapshot's table."""
        return list(self.dump_rows(_NONE))

    def load(self, table: pa.Table) -> None:
        """Load dumped state; the parent's rows were put in place before."""
        columns = [table.column(field.name).combine_chunks() for field in self.keys.fields]
        groups = self.keys.slots(columns or [np.empty(table.num_rows)])
        self.keys.adopt(groups)
        self.states.reserve(self.keys.capacity)
        every = np.arange(self.members.slots)
        in_place = self.members.result(every)
        self.members.clear(every)
        self.states.clear(groups)
        self.states.load(groups, table)
        self.members.decode(groups, table.column(MEMBERS).to_numpy())
        if (self.members.result(every) < in_place).any():
            raise SnapshotError(
                f"the state of fold {self.fold.name!r} has fewer members than there are rows below"
            )
        self._touched.add(groups, self.keys.capacity)
        self.set_dirty()


def merged(fold: Fold, tables: Sequence[pa.Table]) -> pa.Table:
    """Return the dumped groups of several partitions as those of one, which has all their rows."""
    if len(tables) == 1:
        return tables[0]
    keys, states = key_space(fold.key), States(fold.aggregates, retractable=True)
    slots = []
    for table in tables:
        columns = [table.column(field.name).combine_chunks() for field in keys.fields]
        slots.append(keys.slots(columns or [np.empty(table.num_rows)]))
        keys.adopt(slots[-1])
    members = np.zeros(keys.capacity, np.int64)
    for table, into in zip(tables, slots, strict=True):
        scratch = keys.capacity + np.arange(len(into))
        states.reserve(keys.capacity + len(into))
        states.load(scratch, table)
        states.merge(into, scratch)
        states.clear(scratch)
        np.add.at(members, into, table.column(MEMBERS).to_numpy())
    every = np.unique(np.concatenate(slots))
    counted = {MEMBERS: pa.array(members[every])}
    return pa.table({**key_columns(keys, every), **counted, **states.dump(every)})

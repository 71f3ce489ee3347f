"""Two tables to one, where a row of either side may have several of the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ripple.engine.kernels.postings import Postings
from ripple.engine.operators.joins.pieces import pieces
from ripple.engine.operators.joins.referring_rows import compared
from ripple.engine.operators.joins.table_join_rows import TableJoinRows
from ripple.engine.snapshots.slot_arrays import grown
from ripple.model.keys.space import KeySpace, key_space
from ripple.model.pipeline.nodes import type_of
from ripple.model.schema.types import Field, bare_type

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from ripple.engine.graph.column import Column
    from ripple.engine.graph.node import Graph, Node
    from ripple.model.pipeline.nodes import TableJoin

    Ints = npt.NDArray[np.int64]

_NONE = np.empty(0, np.int64)


class Side:
    """The rows of one side by the value of the compared fields, and the pairs of each.

    Invariants between stabilizes: ``valued`` has the value of each present row without a null
    among them, and ``pairs`` each pair by the slot of its row here.
    """

    def __init__(self, column: Column, names: list[str], values: KeySpace) -> None:
        """values: of both sides."""
        self.column = column
        self.valued = Postings()
        self.pairs = Postings()
        self._names = names
        self._values = values
        self._changed: list[Ints] = []
        self._moved: list[Ints] = []

    def take(self) -> Ints:
        """Take notice of changed rows; return the values that rows do not have any more."""
        slots, _, now = self.column.changes()
        found = np.full(len(slots), -1, np.int64)
        at = np.flatnonzero(now)
        if len(at):
            columns, there = compared(self.column, self._names, slots[at])
            if there.any():
                found[at[there]] = values = self._values.slots(columns)
                self._values.adopt(values)
        self.reserve()
        self._changed.append(slots)
        self._moved.append(slots[self.valued.links_of(slots) != found])
        return self.valued.put(slots, found)

    def reserve(self) -> None:
        """Make room for all rows and values."""
        self.valued.reserve(self.column.keys.capacity, self._values.capacity)

    def changed(self) -> tuple[Ints, Ints]:
        """Return the changed rows, once, and those among them with another value."""
        lists = self._changed, self._moved
        changed, moved = (np.concatenate([_NONE, *one]) for one in lists)
        for one in lists:
            one.clear()
        return changed, moved

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.valued.nbytes + self.pairs.nbytes


class PairedRows(TableJoinRows):
    """Each row of the left beside each of the right whose compared fields are equal, and not null.

    Invariants between stabilizes: a pair that is there has a slot, with left_at and right_at of its
    rows; it is in the lists of both. A value that no row has, has no slot.
    """

    def __init__(self, graph: Graph, join: TableJoin, left: Column, right: Column) -> None:
        super().__init__(graph, join, left, right)
        kinds = {field.name: bare_type(type_of(field)) for field in join.fields_in}
        mine, theirs = [one for one, _ in join.pairs], [one for _, one in join.pairs]
        self._values = key_space([Field(name, kinds[name]) for name in mine])
        self._sides = Side(left, mine, self._values), Side(right, theirs, self._values)
        key = [field.name for field in right.keys.fields]
        self._rest = [at for at, name in enumerate(key) if name not in theirs]
        """The places of fields in the key on the right that are in that of a pair."""

    def parent_changed_now(self, parent: Node) -> None:
        """Note the changed rows of a side, and their values."""
        for side in self._sides:
            if side.column is parent:
                self._loose.append(side.take())

    def recompute_now(self) -> None:
        """Show the pairs of changed rows, and those of rows with other values."""
        mine, theirs = self._sides
        (left, left_moved), (right, right_moved) = mine.changed(), theirs.changed()
        for side in self._sides:
            side.reserve()
        self._make_room()
        was = np.union1d(mine.pairs.rows_of(left), theirs.pairs.rows_of(right))
        of_left = mine.valued.links_of(self._left_at[was])
        of_right = theirs.valued.links_of(self._right_at[was])
        self._pair(was[(of_left < 0) | (of_left != of_right)], None)
        self._touch(was)
        for lefts, rights in _matches(left_moved, mine, theirs):
            self._join(lefts, rights)
        for rights, lefts in _matches(right_moved, theirs, mine):
            self._join(lefts, rights)
        super().recompute_now()

    def _join(self, left: Ints, right: Ints) -> None:
        """Give each pair of these slots its row."""
        if not len(left):
            return
        keys = self._right.keys.arrays(right)
        columns = [*self._left.keys.arrays(left), *(keys[at] for at in self._rest)]
        found = self.keys.slots(columns or [left])
        self.keys.adopt(found)
        self._make_room()
        self._pair(found, (left, right))
        self._touch(found)

    def _make_room(self) -> None:
        self._left_at = grown(self._left_at, self.keys.capacity, -1)
        self._right_at = grown(self._right_at, self.keys.capacity, -1)
        for side in self._sides:
            side.pairs.reserve(self.keys.capacity, side.column.keys.capacity)

    def _pair(self, pairs: Ints, slots: tuple[Ints, Ints] | None) -> None:
        """Note of which rows pairs are, None where they are not there any more."""
        gone = np.full(len(pairs), -1, np.int64)
        left, right = (gone, gone) if slots is None else slots
        self._left_at[pairs], self._right_at[pairs] = left, right
        for side, at in zip(self._sides, (left, right), strict=True):
            side.pairs.put(pairs, at)

    def expired(self, left: Ints, right: Ints) -> Ints:
        """Return no rows: neither side has windows that end."""
        del left, right
        return _NONE

    def _free_links(self, links: Ints) -> None:
        counts = [side.valued.counts_of(links) for side in self._sides]
        self._values.release(links[counts[0] + counts[1] == 0])

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return super().nbytes + sum(side.nbytes for side in self._sides)


def _matches(slots: Ints, side: Side, other: Side) -> Iterator[tuple[Ints, Ints]]:
    """Yield the slots of rows, one for each match, and those of the matches, piece by piece."""
    values = side.valued.links_of(slots)
    slots, values = slots[values >= 0], values[values >= 0]
    counts = other.valued.counts_of(values)
    for here in pieces(counts):
        yield np.repeat(slots[here], counts[here]), other.valued.rows_of(values[here])

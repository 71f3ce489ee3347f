"""Two tables to one, where a row of either side may have several of the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.engine.kernels.postings import Postings
from ripple.engine.operators.joins.pieces import pieces
from ripple.engine.operators.joins.referring_rows import compared
from ripple.engine.operators.joins.table_join_rows import TableJoinRows
from ripple.engine.snapshots.slot_arrays import grown
from ripple.model.keys.space import KeySpace, key_space, slot_keys
from ripple.model.pipeline.nodes import type_of
from ripple.model.schema.types import TEXTS, Bool, Field, bare_type

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
    among them, ``pairs`` each pair by the slot of its row here, and ``alone`` by row the slot of
    what is shown for it without a partner, -1 for nothing.
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
        self.left: list[Ints] = []
        """Values that rows do not have any more, where rows without a partner are shown."""
        self.alone = _NONE

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

    def values_of(self, moved: Ints) -> Ints:
        """Return the values that rows have now, and, once, those that some do not have any more."""
        values = self.valued.links_of(moved)
        found = np.unique(np.concatenate([values[values >= 0], *self.left]))
        self.left.clear()
        return found

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.valued.nbytes + self.pairs.nbytes + self.alone.nbytes


class PairedRows(TableJoinRows):
    """Each row of the left beside each of the right whose compared fields are equal, and not null.

    Invariants between stabilizes: a pair that is there has a slot, with left_at and right_at of its
    rows; it is in the lists of both. A row that is shown without a partner has a slot with its own
    place alone, which no list has. A value that no row has, has no slot.

    shares: whether a key may begin with the slot of the row on the left, of which none becomes
    final.
    """

    _by_key = False

    def __init__(
        self, graph: Graph, join: TableJoin, left: Column, right: Column, *, shares: bool
    ) -> None:
        rest = join.key[len(join.left_key) :]
        self._shares = shares and join.how in ("inner", "left") and bool(rest)
        keys = slot_keys(left.keys, rest) if self._shares else None
        super().__init__(graph, join, left, right, keys=keys)
        kinds = {field.name: bare_type(type_of(field)) for field in join.fields_in}
        mine, theirs = [one for one, _ in join.pairs], [one for _, one in join.pairs]
        self._values = key_space([Field(name, kinds[name]) for name in mine])
        self._sides = Side(left, mine, self._values), Side(right, theirs, self._values)
        key = [field.name for field in right.keys.fields]
        self._rest = [at for at, name in enumerate(key) if name not in join.hidden]
        """The places of fields in the key on the right that are in that of a pair."""
        self._hows = (join.how in ("left", "full"), join.how in ("right", "full"))

    def parent_changed_now(self, parent: Node) -> None:
        """Note the changed rows of a side, and their values."""
        for side in self._sides:
            if side.column is parent:
                left = side.take()
                self._loose.append(left)
                if any(self._hows):
                    side.left.append(left)

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
        if any(self._hows):
            values = mine.values_of(left_moved), theirs.values_of(right_moved)
            for number, changed in enumerate((left, right)):
                if self._hows[number]:
                    near = self._sides[number].valued.rows_of(values[1 - number])
                    self._leave_alone(number, np.union1d(changed, near))
        super().recompute_now()

    def _leave_alone(self, number: int, rows: Ints) -> None:
        """Show those of a side's rows that have no partner, and no more those that have one now."""
        side, other, at = self._sides[number], self._sides[1 - number], self._at(number)
        side.alone = grown(side.alone, side.column.keys.capacity, -1)
        values = side.valued.links_of(rows)
        has_none = values < 0
        has_none[~has_none] = other.valued.counts_of(values[~has_none]) == 0
        has_none &= side.column.has_rows(rows)
        slots = side.alone[rows]
        gone, new = rows[~has_none & (slots >= 0)], rows[has_none & (slots < 0)]
        at[side.alone[gone]] = -1
        side.alone[gone] = -1
        self._touch(slots[slots >= 0])
        if len(new):
            found = self._slots(*((new, None) if number == 0 else (None, new)))
            side.alone[new] = found
            self._at(number)[found] = new
            self._touch(found)

    def _at(self, number: int) -> Ints:
        return self._right_at if number else self._left_at

    def _join(self, left: Ints, right: Ints) -> None:
        """Give each pair of these slots its row."""
        if not len(left):
            return
        found = self._slots(left, right)
        self._pair(found, (left, right))
        self._touch(found)

    def _slots(self, left: Ints | None, right: Ints | None) -> Ints:
        """Return the slots of pairs; None for a side without a row."""
        slots = left if left is not None else right
        assert slots is not None, "a row is of one side, or of both"
        mine = [left] if self._shares else _keys(self._left.keys, left, len(slots))
        theirs = _keys(self._right.keys, right, len(slots))
        columns = [*mine, *(theirs[at] for at in self._rest)]
        if self.fold.has_sides:
            one = "left_only" if right is None else "right_only"
            which = "both" if left is not None and right is not None else one
            columns.append(pa.array([which] * len(slots), pa.string()))
        found = self.keys.slots(columns or [slots])
        self.keys.adopt(found)
        self._make_room()
        return found

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


def _keys(space: KeySpace, slots: Ints | None, count: int) -> list[pa.Array]:
    """Return the keys of rows of a side; of none texts without letters, zeros and false."""
    if slots is not None:
        return space.arrays(slots)
    return [
        pa.array([""] * count, pa.string())
        if isinstance(field.type, TEXTS)
        else pa.array(np.zeros(count, np.bool_ if isinstance(field.type, Bool) else np.int64))
        for field in space.fields
    ]


def _matches(slots: Ints, side: Side, other: Side) -> Iterator[tuple[Ints, Ints]]:
    """Yield the slots of rows, one for each match, and those of the matches, piece by piece."""
    values = side.valued.links_of(slots)
    slots, values = slots[values >= 0], values[values >= 0]
    counts = other.valued.counts_of(values)
    for here in pieces(counts):
        yield np.repeat(slots[here], counts[here]), other.valued.rows_of(values[here])

"""Two tables to one: the rows of a join, computed again where either side changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.engine.graph.column import Column, DerivedColumn
from ripple.engine.kernels.beside import follow, lay_beside, lay_touched, link_sides, unplaced
from ripple.engine.operators.join_state import JoinState, SideState
from ripple.engine.operators.result_rows import ResultRows, read_by_filters
from ripple.engine.operators.uncomputable import UncomputableRows
from ripple.engine.snapshots.ledger import Ledger
from ripple.engine.snapshots.slot_arrays import grown
from ripple.engine.snapshots.stateless import Stateless
from ripple.model.expression.bound import Values
from ripple.model.keys.slots import SlotSet
from ripple.model.keys.space import key_space, slots_of_same

if TYPE_CHECKING:
    import numpy.typing as npt

    from ripple.engine.graph.node import Graph, Node
    from ripple.engine.operators.uncomputable import Failure
    from ripple.model.keys.space import KeySpace
    from ripple.model.pipeline.nodes import TableJoin

    Ints = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]


_NONE = np.empty(0, np.int64)


class TableJoinRows(DerivedColumn):
    """A keyed view of two keyed views, by the key of both: the rows on either side, side by side.

    Invariants between stabilizes: row_of[s] is the row of the present row at slot s of the left,
    or -1, and left_at[r] its slot; link_of[s] and right_at[k] say the same of the right, where a
    link finds its key: here a row as well. A row that neither side has, nor a reference, has no
    slot.
    """

    _by_key = True
    """Whether a link is a row."""

    def __init__(
        self,
        graph: Graph,
        join: TableJoin,
        left: Column,
        right: Column,
        *,
        keys: KeySpace | None = None,
    ) -> None:
        """Join the rows of ``left`` and ``right``, which may be the same.

        keys: of the rows, if another column has them.
        """
        self.fold = join
        self.result_rows = ResultRows(join)
        fields = self.result_rows.column_fields
        parents = [left] if left is right else [left, right]
        super().__init__(graph, parents, keys or key_space(join.key), fields, join.name)
        self.uncomputable = UncomputableRows(self.keys)
        # Its rows follow from those of both sides: a table without rows says that it was there.
        self.ledger = Ledger(key_space(join.key), Stateless(join.key))
        self._left, self._right = left, right
        names = iter([one.name for one in join.fields_in[len(join.key) :]])
        self._names: tuple[list[str | None], list[str | None]] = (
            [next(names) for _ in left.names],
            [None if name in join.hidden else next(names) for name in right.names],
        )
        """Those in a row of the fields of both sides; None for a hidden field."""
        shown = [at for at, name in enumerate(self._names[1]) if name is not None]
        self._shown_of_right = np.array(shown, np.int64)
        self._needs = join.how in ("inner", "left"), join.how in ("inner", "right")
        """Whether a row needs each side."""
        self._filtered = read_by_filters(join.steps)
        """The fields that the steps read, if these are filters; else None."""
        self._touched = SlotSet()
        self._row_of = self._left_at = self._link_of = self._right_at = _NONE
        self._empty: list[Ints] = []
        self._loose: list[Ints] = []
        """Links, or values, that lost a row since the last free."""

    def link(self) -> None:
        """Hold no values that either side holds, where each row has both and no step gives others.

        Neither side has rows that become final, or is linked itself.
        """
        if self.fold.how == "inner" and not self.fold.steps:
            link_sides(self, self._left, self._right, self._shown_of_right)

    # --- changes ---

    def parent_changed_now(self, parent: Node) -> None:
        """Note where the changed rows of a side belong, and the rows to compute again."""
        if parent is self._left and not self._follows_left():
            self._take_left(*self._left.changes())
        if parent is self._right and not self._follows_right():
            self._take_right(*self._right.changes())

    def _follows_left(self) -> bool:
        """Touch the rows of the left side's changes, new ones included; none if one is absent."""
        if not self._by_key or (new := unplaced(self._left, self._row_of)) is None:
            return False
        if len(new):
            self._row_of = grown(self._row_of, self._left.keys.capacity, -1)
            self._place_left(new)
            self._right_at = grown(self._right_at, self.keys.capacity, -1)
        return follow(self._left, self._row_of, self._touched, self.keys.capacity)

    def _follows_right(self) -> bool:
        """Touch the rows of the right side's changes likewise."""
        if not self._by_key or (new := unplaced(self._right, self._link_of)) is None:
            return False
        if len(new):
            self._link_of = grown(self._link_of, self._right.keys.capacity, -1)
            self._place_right(new)
        return follow(self._right, self._link_of, self._touched, self.keys.capacity)

    def _place_left(self, new: Ints) -> None:
        """Assign rows to slots of the left."""
        found = self._rows_of(new)
        self._left_at = grown(self._left_at, self.keys.capacity, -1)
        self._row_of[new], self._left_at[found] = found, new

    def _place_right(self, new: Ints) -> None:
        """Assign links to slots of the right."""
        found = self._links_of(new)
        self._link_of[new], self._right_at[found] = found, new

    def _take_left(self, slots: Ints, was: Any, now: Any) -> None:
        del was
        self._row_of = grown(self._row_of, self._left.keys.capacity, -1)
        gone, come = _gone_and_come(slots, now)
        if len(gone):
            self._touch(self._part(gone))
        if len(come):
            rows = self._row_of[come]
            new = come[rows < 0]
            if len(new):
                self._place_left(new)
                rows = self._row_of[come]
            self._refer(come, rows)
            self._touch(rows)

    def _rows_of(self, slots: Ints) -> Ints:
        """Return the rows that slots of the left get."""
        if self._left.keys.fields:
            return slots_of_same(self.keys, self._left.keys, slots)
        found = self.keys.slots([slots])
        self.keys.adopt(found)
        return found

    def _take_right(self, slots: Ints, was: Any, now: Any) -> None:
        del was
        self._link_of = grown(self._link_of, self._right.keys.capacity, -1)
        gone, come = _gone_and_come(slots, now)
        if len(gone):
            links = self._link_of[gone]
            self._touch(self._rows_with(links[links >= 0]))
            self._unlink(gone)
        if len(come):
            links = self._link_of[come]
            new = come[links < 0]
            if len(new):
                self._place_right(new)
                links = self._link_of[come]
            self._touch(self._rows_with(links))

    def _touch(self, rows: Ints) -> None:
        self._touched.add(rows, self.keys.capacity)

    def _part(self, slots: Ints) -> Ints:
        """Return the rows of slots of the left, which are not there any more."""
        rows = self._row_of[slots]
        rows = rows[rows >= 0]
        self._row_of[slots] = self._left_at[rows] = -1
        return rows

    def _unlink(self, slots: Ints) -> None:
        """Take notice that slots of the right are not there any more."""
        links = self._link_of[slots]
        self._link_of[slots] = self._right_at[links[links >= 0]] = -1

    # --- rows and links: here the same ---

    def _links_of(self, slots: Ints) -> Ints:
        """Return the links of slots of the right."""
        if len(self.fold.key) == 1:
            found = slots_of_same(self.keys, self._right.keys, slots)
        else:
            keys = self._right.keys.arrays(slots)
            at = {left: place for place, (left, _) in enumerate(self.fold.pairs)}
            found = self.keys.slots([keys[at[field.name]] for field in self.fold.key])
            self.keys.adopt(found)
        self._left_at = grown(self._left_at, self.keys.capacity, -1)
        self._right_at = grown(self._right_at, self.keys.capacity, -1)
        return found

    def _refer(self, slots: Ints, rows: Ints) -> None:
        """Note which row of the right is named by rows of the left."""
        del slots, rows
        self._right_at = grown(self._right_at, self.keys.capacity, -1)

    def _rows_with(self, links: Ints) -> Ints:
        """Return the rows of which the right side is found by these links."""
        return links

    def _partners(self, rows: Ints) -> Ints:
        """Return the slots of the right that belong to rows, -1 for none."""
        return self._right_at[rows]

    # --- rows as they are ---

    def recompute_now(self) -> None:
        """Show the rows of which a side changed."""
        if self._by_key and not self.fold.steps:
            self._lay()
            return
        rows = self._touched.take()
        left, right = self._left_at[rows], self._partners(rows)
        empty = rows[left < 0]
        empty = empty[self._has_no(empty)]
        if len(empty):
            self._empty.append(empty)
        failed: dict[int, Failure] = {}
        if self._filtered is None:
            shown, kept = rows[self._is_there(left, right)], _NONE
            if len(shown):
                # It is its own source of results.
                kept, values, valid, failed = self.result_rows.computed(self, self, shown)
                self.put(kept, values, valid)
            if len(kept) < len(rows):
                self.drop(np.setdiff1d(rows, kept, assume_unique=True))
        else:
            if self.fold.steps:
                at = np.flatnonzero(self._is_there(left, right))
                named = self._fields_of(left[at], right[at], self._filtered)
                passes, failed = self.result_rows.passes(self, rows[at], named)
                left[at[~passes]] = right[at[~passes]] = -1
            lay_beside(
                self,
                self._left,
                self._right,
                self._shown_of_right,
                rows,
                left,
                right,
                needs_left=self._needs[0],
                needs_right=self._needs[1],
            )
        if failed or self.uncomputable.failures:
            self.uncomputable.note(rows, failed)

    def _lay(self) -> None:
        """Do it where a row is no more than both sides of its own place."""
        empty = lay_touched(
            self,
            self._left,
            self._right,
            self._shown_of_right,
            self._touched,
            self._left_at,
            self._right_at,
            needs_left=self._needs[0],
            needs_right=self._needs[1],
        )
        if len(empty):
            self._empty.append(empty)

    def _is_there(self, left: Ints, right: Ints) -> Mask:
        """Return the rows with a side, and with all sides that they need. -1: none."""
        there: Mask = (left >= 0) | (right >= 0)
        for slots, needed in zip((left, right), self._needs, strict=True):
            if needed:
                there &= slots >= 0
        return there

    def _has_no(self, rows: Ints) -> Mask:
        """Return whether rows are not kept for their right side."""
        none: Mask = self._right_at[rows] < 0
        return none

    def results(self, rows: Ints) -> tuple[Ints, dict[str, Any], dict[int, str]]:
        """Return rows, their fields by name, and those without: none."""
        return rows, self._fields_of(self._left_at[rows], self._partners(rows), None), {}

    def _fields_of(self, left: Ints, right: Ints, wanted: set[str] | None) -> dict[str, Any]:
        """Return fields of rows that are not in the key, by name.

        left, right: where they are on either side. wanted: the names to read, None for all.
        """
        named: dict[str, Any] = {}
        for column, slots, names in zip(
            (self._left, self._right), (left, right), self._names, strict=True
        ):
            chosen = [
                (at, name)
                for at, name in enumerate(names)
                if name is not None and (wanted is None or name in wanted)
            ]
            fields = _fields_at(column, slots, [at for at, _ in chosen]) if chosen else []
            named |= {name: values for (_, name), values in zip(chosen, fields, strict=True)}
        return named

    @property
    def state(self) -> JoinState:
        """How many rows each side has: it keeps none of its own."""
        left, right = self._left, self._right
        return JoinState(
            (
                SideState(self.fold.reads, left.row_count),
                SideState(self.fold.reads_right, right.row_count),
            )
        )

    # --- rows that leave ---

    @property
    def left_empty(self) -> bool:
        """Whether there are rows or links to free."""
        return bool(self._empty or self._loose)

    def expired(self, left: Ints, right: Ints) -> Ints:
        """Return the rows of windows that are over on both sides, whose final slots are given."""
        left = left[left < len(self._row_of)]
        right = right[right < len(self._link_of)]
        links = self._link_of[right]
        rows = np.union1d(self._part(left), self._rows_with(links[links >= 0]))
        self._unlink(right)
        return rows if self.fold.ends_with_window else rows[:0]

    def free(self, expired: Ints) -> None:
        """Free these rows, those without a row of either side, and links without a use."""
        if self._empty or len(expired):
            self._free_rows(expired)
        if self._loose:
            links = np.unique(np.concatenate(self._loose))
            self._loose.clear()
            self._free_links(links)

    def _free_rows(self, expired: Ints) -> None:
        gone = np.unique(np.concatenate([expired, *self._empty]))
        self._empty.clear()
        gone = gone[(self._left_at[gone] < 0) & self._has_no(gone)]
        if len(gone):
            self.uncomputable.finalize(expired)
            self.retire(gone)
            self._release(gone)

    def _release(self, rows: Ints) -> None:
        """Give the keys of rows up."""
        self.keys.release(rows)

    def _free_links(self, links: Ints) -> None:
        """Free those of these links that nothing uses; by key there are none."""

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        arrays = (self._row_of, self._left_at, self._link_of, self._right_at)
        return super().nbytes + sum(array.nbytes for array in arrays)

    # --- snapshots: of the sides alone ---

    def load(self, table: pa.Table) -> None:
        """Load dumped state: there is none."""


def _gone_and_come(slots: Ints, now: npt.NDArray[np.uint8]) -> tuple[Ints, Ints]:
    """Return the changed slots without a row now, and those with one."""
    if now.all():
        return _NONE, slots
    is_there = now != 0
    return slots[~is_there], slots[is_there]


def _fields_at(column: Column, slots: Ints, fields: list[int]) -> list[Values]:
    """Return some fields of the rows at ``slots``, null where one is -1."""
    there = slots >= 0
    if there.all():
        return [Values(values, _mask(valid)) for values, valid in column.rows(slots, fields)]
    at = np.flatnonzero(there)
    found = []
    for values, valid in column.rows(slots[at], fields):
        present = there if valid is None else there.copy()
        if valid is not None:
            present[at] = valid.view(np.bool_)
        found.append(Values(_spread(values, at, len(slots)), present))
    return found


def _mask(valid: Any) -> Mask | None:
    return None if valid is None else valid.view(np.bool_)


def _spread(values: Any, at: Ints, count: int) -> Any:
    """Return ``values`` at their places among ``count``, anything elsewhere."""
    if isinstance(values, np.ndarray):
        spread = np.zeros(count, values.dtype)
        spread[at] = values
        return spread
    places = np.full(count, -1, np.int64)
    places[at] = np.arange(len(at))
    if isinstance(values, pa.Array):
        return values.take(pa.array(places, mask=places < 0))
    return [values[place] if place >= 0 else None for place in places.tolist()]

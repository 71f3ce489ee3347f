"""The rows of an interval join that shows those of its right side without a partner, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.core.errors import LimitError
from ripple.engine.kernels.columns import Columns
from ripple.engine.kernels.runs import paired
from ripple.engine.operators.held_rows import IDENTITY, PLACE, TIME, in_order
from ripple.engine.operators.joins.interval_rows import TOO_MANY, Due, PiecewiseRows
from ripple.engine.operators.joins.near_rows import NearRows
from ripple.engine.operators.rows import RejectedRow, Rows
from ripple.engine.operators.waiting import settled_ns
from ripple.model.pipeline.nodes import FLAT_ROWS_MAX
from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ripple.engine.operators.join_state import JoinState
    from ripple.engine.operators.joins.join_side import JoinSide
    from ripple.engine.operators.waiting import ByInput, Mark
    from ripple.engine.snapshots.held_saving import HeldSaving
    from ripple.model.pipeline.nodes import IntervalJoin
    from ripple.model.schema.types import Field

    Ints = npt.NDArray[np.int64]


class KnownSide:
    """Rows of one side below its mark: possible partners, and those with a null key."""

    def __init__(self, side: JoinSide) -> None:
        """Know no rows of a side."""
        self.side = side
        self.near = NearRows(side.held.schema)
        self.alone = side.held.empty()

    @property
    def count(self) -> int:
        """The number of rows."""
        return self.near.count + self.alone.count

    def due(self, from_ns: int, mark_ns: int) -> pa.RecordBatch:
        """Return the rows from a mark on and below another one, in their order."""
        found = self.near.between(from_ns, mark_ns)
        alone = self.alone.take_below(mark_ns)
        if alone is not None:
            found.append(alone)
        if not found:
            return pa.RecordBatch.from_pylist([], self.side.held.schema)
        return in_order(pa.concat_batches(found))


class DueOfBoth(Due[pa.RecordBatch]):
    """Rows of the left side, and those of the right one without a partner, in one order.

    order: of each its number among the left rows, or, past those, among the right ones. keys: the
    columns of all, by their names on the left.
    """

    def __init__(
        self,
        rows: tuple[pa.RecordBatch, pa.RecordBatch],
        slots: Ints,
        on: Sequence[tuple[Field, Field]],
    ) -> None:
        """slots: of the left rows. on: the compared fields."""
        left, self.right = rows
        times, places = (_both(*(one.column(name) for one in rows)) for name in (TIME, PLACE))
        is_right = np.arange(len(times)) >= left.num_rows
        self.order = order = np.lexsort((places, is_right, places // FLAT_ROWS_MAX, times))
        known = np.concatenate([slots, np.full(self.right.num_rows, -1, np.int64)])
        super().__init__(left, known[order], times[order], places[order])
        at = pa.array(order)
        self.keys: dict[str, pa.Array] = {
            mine.name: pa.concat_arrays(
                [left.column(mine.name), self.right.column(theirs.name)]
            ).take(at)
            for mine, theirs in on
        }


class OuterIntervalRows(PiecewiseRows[DueOfBoth]):
    """Holds rows of both sides until no row on time can join or precede them; gives all in order.

    A row is looked at once its own side is past it. It follows by its own event time once both
    sides are past its last partner; it is a partner itself until no row that could have it can
    follow.

    Invariants: both sides know the rows below their marks that may still follow or be partners;
    all below ``_given_ns`` followed.
    """

    node: IntervalJoin

    def __init__(
        self, node: IntervalJoin, feeds: Sequence[Sequence[Mark]], by_input: ByInput
    ) -> None:
        """Make an empty node; see StreamJoinRows."""
        super().__init__(node, feeds, by_input)
        self._known_sides = tuple(KnownSide(side) for side in self.sides)
        self._given_ns = watermark.NONE
        self._freed_ns = (watermark.NONE, watermark.NONE)

    @property
    def bounds_ns(self) -> tuple[int, int]:
        """Per side, no row below follows: the last partners of each there have come."""
        lasts = (max(0, -self.node.lo_ns), max(0, self.node.hi_ns))
        left_ns, right_ns = (
            settled_ns(side.settled_ns, last) for side, last in zip(self.sides, lasts, strict=True)
        )
        return left_ns, right_ns

    @property
    def _known_count(self) -> int:
        return self._known_sides[1].count

    @property
    def state(self) -> JoinState:
        """Where each side is; the left one has rows that are kept for later partners, too."""
        state = super().state
        left, right = state.sides
        held = left.rows + self._known_sides[0].count
        return state._replace(sides=(left._replace(rows=held), right))

    @property
    def _frees_ns(self) -> tuple[int, int]:
        """Per side: no row below it can follow, nor be a partner of a later row."""
        spans = (max(0, self.node.hi_ns), max(0, -self.node.lo_ns))
        left_ns, right_ns = (settled_ns(self.watermark_ns, before) for before in spans)
        return left_ns, right_ns

    def _settle(self) -> None:
        """Look at the rows of both sides below their marks; let settled ones be due."""
        for known, freed_ns in zip(self._known_sides, self._freed_ns, strict=True):
            self._know(known, freed_ns)
        mark_ns = self.watermark_ns
        if mark_ns <= self._given_ns:
            return
        left, right = (known.due(self._given_ns, mark_ns) for known in self._known_sides)
        right = right.filter(pa.array(self._has_none(right)))
        if left.num_rows or right.num_rows:
            self._due = DueOfBoth((left, right), self.slots_of(left, self.left), self.node.on)

    def _know(self, known: KnownSide, freed_ns: int) -> None:
        """Look at the rows of a side below its mark."""
        rows = known.side.held.take_below(known.side.settled_ns)
        if rows is None:
            return
        slots = self.slots_of(rows, known.side)
        if (slots < 0).any():
            known.alone.add(rows.filter(pa.array(slots < 0)))
            rows, slots = rows.filter(pa.array(slots >= 0)), slots[slots >= 0]
        if rows.num_rows:
            known.near.add(rows, slots, self.keys.capacity, freed_ns)

    def _paired(self, due: DueOfBoth) -> Rows | None:
        """Return the next left rows with their partners, and right rows without, in their order.

        Both are numbered as rows of one batch, those of the left side first.
        """
        node, near = self.node, [known.near for known in self._known_sides]
        left, right, count = due.left, due.right, due.left.num_rows
        here, counts, numbers = due.match(near[1], node)
        order, times = due.order[here], due.times[here]
        alone = (counts == 0) & (order < count)
        least = ((order >= count) | (node.how == "full")).astype(np.int64)
        pairs, partners, places, rows_lost, _ = paired(
            due.records[here], due.places[here], counts, numbers, FLAT_ROWS_MAX, least
        )
        lost_left = int(np.count_nonzero(order[rows_lost] < count))
        alone[rows_lost] = False
        self._count(alone[order < count], lost_left)
        keys = {name: one.slice(here.start, len(counts)) for name, one in due.keys.items()}
        if len(rows_lost):
            lost = [RejectedRow(row, node.name, TOO_MANY) for row in rows_lost.tolist()]
            self.lose_some(list(keys.values()), times, lost)
        if not len(pairs):
            return None
        origins = order[pairs]
        own = pa.array(origins, mask=origins >= count)
        columns = {one.name: left.column(one.name).take(own) for one in node.left_fields}
        columns |= {name: column.take(pa.array(pairs)) for name, column in keys.items()}
        names = [one.name for one in node.right_fields]
        found = near[1].columns(partners, names)
        at = np.arange(len(origins))
        is_alone = origins >= count
        at[is_alone] = len(origins) + origins[is_alone] - count
        for one, name, column in zip(node.added, names, found, strict=True):
            columns[one.name] = pa.concat_arrays([column, right.column(name)]).take(pa.array(at))
        rows = Rows(Columns(columns), len(pairs), places)
        rows.times_ns = times[pairs]
        if node.finals:
            self.identities_taken = _both(left.column(IDENTITY), right.column(IDENTITY))[origins]
        return rows

    def _has_none(self, right: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        """Return which right rows have no partner."""
        lo_ns, hi_ns = -self.node.hi_ns, -self.node.lo_ns
        slots, times = self.slots_of(right, self.right), np.asarray(right.column(TIME))
        counts, _ = self._known_sides[0].near.match(slots, times, lo_ns, hi_ns, 0)
        none: npt.NDArray[np.bool_] = counts == 0
        return none

    def _end(self) -> None:
        self._given_ns, self._freed_ns = self.watermark_ns, self._frees_ns
        if any(known.near.has_grown(len(self.keys.index)) for known in self._known_sides):
            self._free()

    def _free(self) -> None:
        """Free rows and keys that nothing needs: now and then, since it looks at all keys."""
        slots = self.keys.index.live_slots()
        left, right = (
            known.near.free_below(free_ns, slots)
            for known, free_ns in zip(self._known_sides, self._freed_ns, strict=True)
        )
        gone: Ints = np.intersect1d(left, right)
        if len(gone):
            self.keys.release(gone)
            self.keys.trim()

    @property
    def waiting_count(self) -> int:
        """The rows of both sides that have not followed."""
        known = (one.near.count_from(self._given_ns) + one.alone.count for one in self._known_sides)
        return super().waiting_count + sum(known)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        known = (one.near.nbytes + one.alone.nbytes for one in self._known_sides)
        held = (side.held.nbytes for side in self.sides)
        return sum(known) + sum(held) + self.keys.index.nbytes

    def take(self) -> Rows | None:
        """Return the next rows of the settled ones; see PiecewiseRows.

        Raises LimitError where one batch cannot have their texts.
        """
        try:
            return super().take()
        except (OverflowError, pa.ArrowInvalid) as error:
            if "exceed 2 GiB" not in str(error) and "overflow" not in str(error):
                raise
            raise LimitError(
                f"join_interval {self.node.name!r}: with how={self.node.how!r} its rows would have "
                "more than 2 GiB of a field at once: leave long fields out before the join, or say "
                f"how='left' ({error})"
            ) from error

    # --- snapshots ---

    def savings(self) -> tuple[HeldSaving, HeldSaving]:
        """Begin to dump the rows of each side that are held, or may still follow or be partners."""
        of_left = self._table(0).to_batches()
        return self.left.held.saving(of_left), self.right.held.saving(self._known())

    def _known(self) -> list[pa.RecordBatch]:
        known: list[pa.RecordBatch] = self._table(1).to_batches()
        return known

    def _table(self, number: int) -> pa.Table:
        known = self._known_sides[number]
        rows = [*known.near.parts(self._frees_ns[number]), *known.alone.parts()]
        return pa.Table.from_batches(rows, known.side.held.schema)

    def load(self, tables: Sequence[pa.Table]) -> None:
        """Load dumped state, in which the rows below the mark of the result followed."""
        super().load(tables)
        self._given_ns = self.watermark_ns


def _both(left: pa.Array, right: pa.Array) -> Ints:
    return np.concatenate([np.asarray(left), np.asarray(right)])

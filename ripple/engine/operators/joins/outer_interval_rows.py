"""The rows of an interval join that shows those of its right side without a partner, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.core.errors import LimitError
from ripple.engine.kernels.columns import Columns
from ripple.engine.kernels.runs import paired
from ripple.engine.operators.held_rows import IDENTITY, TIME
from ripple.engine.operators.joins import pieces
from ripple.engine.operators.joins.due_rows import DueOfBoth, of_both
from ripple.engine.operators.joins.interval_rows import TOO_MANY, PiecewiseRows
from ripple.engine.operators.joins.known_side import KnownSide
from ripple.engine.operators.rows import RejectedRow, Rows
from ripple.engine.operators.waiting import settled_ns
from ripple.model.pipeline.nodes import FLAT_ROWS_MAX
from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ripple.engine.operators.join_state import JoinState
    from ripple.engine.operators.waiting import ByInput, Mark
    from ripple.engine.snapshots.held_saving import HeldSaving
    from ripple.model.pipeline.waiting_nodes import IntervalJoin

    Ints = npt.NDArray[np.int64]


_OVERFLOWS = (OverflowError, pa.ArrowInvalid)


class OuterIntervalRows(PiecewiseRows[DueOfBoth]):
    """Holds rows of both sides until no row on time can join or precede them; gives all in order.

    A row is looked at once its own side is past it. It follows by its own event time once both
    sides are past its last partner; it is a partner itself until no row that could have it can
    follow.

    Rows are due by spans of event time, and follow by pieces, so that a batch can have the texts of
    each.

    Invariants: both sides know the rows below their marks that may still follow or be partners;
    all below ``_given_ns`` followed, and those below ``_due_ns`` are due.
    """

    node: IntervalJoin

    def __init__(
        self, node: IntervalJoin, feeds: Sequence[Sequence[Mark]], by_input: ByInput
    ) -> None:
        """Make an empty node; see StreamJoinRows."""
        super().__init__(node, feeds, by_input)
        self._known_sides = tuple(KnownSide(side) for side in self.sides)
        self._given_ns = self._due_ns = watermark.NONE
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

    def _frees_ns(self, mark_ns: int) -> tuple[int, int]:
        """Per side: with all below the mark given, no row below it is needed for a later one."""
        spans = (max(0, self.node.hi_ns), max(0, -self.node.lo_ns))
        left_ns, right_ns = (settled_ns(mark_ns, before) for before in spans)
        return left_ns, right_ns

    def _settle(self) -> None:
        """Look at the rows of both sides below their marks; let settled ones be due."""
        for known, freed_ns in zip(self._known_sides, self._freed_ns, strict=True):
            self._know(known, freed_ns)
        mark_ns, spans = self.watermark_ns, pieces.PAIRS_AT_ONCE
        while self._given_ns < mark_ns:
            self._due_ns = self._span(mark_ns, spans)
            try:
                self._due = self._due_of_both(self._due_ns)
                return
            except _OVERFLOWS as error:
                if not _is_of_texts(error) or not self._is_divisible(self._due_ns):
                    raise
                spans //= 2

    def _know(self, known: KnownSide, freed_ns: int) -> None:
        """Look at the rows of a side below its mark."""
        for rows in known.side.held.take_batches(known.side.settled_ns):
            slots = self.slots_of(rows, known.side)
            keyed = slots >= 0
            near = rows
            if not keyed.all():
                near = rows.filter(pa.array(keyed))
                known.alone.add(rows.filter(pa.array(~keyed)))
            if near.num_rows:
                known.near.add(near, slots[keyed], self.keys.capacity, freed_ns)

    def _span(self, mark_ns: int, most: int) -> int:
        """Return the mark up to which so many rows are due, at least all rows of one event time."""
        counts = (known.count_due(self._given_ns, mark_ns) for known in self._known_sides)
        if sum(counts) <= most:
            return mark_ns
        times = np.sort(self._due_times(mark_ns))
        if len(times) <= most:
            return mark_ns
        end = int(times[max(1, most)])
        return end if end > times[0] else int(np.min(times[times > end], initial=mark_ns))

    def _is_divisible(self, mark_ns: int) -> bool:
        """Whether rows of several event times are due."""
        times = self._due_times(mark_ns)
        return len(times) > 0 and bool((times != times[0]).any())

    def _due_times(self, mark_ns: int) -> Ints:
        both = [known.due_times(self._given_ns, mark_ns) for known in self._known_sides]
        return np.concatenate(both)

    def _due_of_both(self, mark_ns: int) -> DueOfBoth | None:
        """Return the rows of both sides below a mark that are due; None if there are none."""
        left, right = (known.due(self._given_ns, mark_ns) for known in self._known_sides)
        right = right.filter(pa.array(self._has_none(right)))
        due = None
        if left.num_rows or right.num_rows:
            due = DueOfBoth((left, right), self.slots_of(left, self.left), self.node.on)
        for known in self._known_sides:
            known.pass_below(mark_ns)
        return due

    def _paired(self, due: DueOfBoth) -> Rows | None:
        """Return the next left rows with their partners, and right rows without, in their order.

        They are fewer where a batch could not have their texts.
        """
        begin, most = due.at, pieces.PAIRS_AT_ONCE
        while True:
            try:
                return self._piece(due, most)
            except _OVERFLOWS as error:
                if not _is_of_texts(error) or most == 1:
                    raise
                due.at, most = begin, most // 2

    def _piece(self, due: DueOfBoth, most: int) -> Rows | None:
        """Do so, with about ``most`` pairs.

        Both are numbered as rows of one batch, those of the left side first.
        """
        node, near = self.node, [known.near for known in self._known_sides]
        count = due.left.num_rows
        here, counts, numbers = due.match(near[1], node, most)
        order, times = due.order[here], due.times[here]
        alone = (counts == 0) & (order < count)
        least = ((order >= count) | (node.how == "full")).astype(np.int64)
        pairs, partners, places, rows_lost, _ = paired(
            due.records[here], due.places[here], counts, numbers, FLAT_ROWS_MAX, least
        )
        keys = {name: one.slice(here.start, len(counts)) for name, one in due.keys.items()}
        origins, own = order[pairs], None
        if len(pairs):
            own = self._columns(due, origins, near[1].columns(partners, self._theirs))
            own |= {name: column.take(pa.array(pairs)) for name, column in keys.items()}
        lost_left = int(np.count_nonzero(order[rows_lost] < count))
        alone[rows_lost] = False
        self._count(alone[order < count], lost_left)
        if len(rows_lost):
            lost = [RejectedRow(row, node.name, TOO_MANY) for row in rows_lost.tolist()]
            self.lose_some(list(keys.values()), times, lost)
        if own is None:
            return None
        rows = Rows(Columns(own), len(pairs), places)
        rows.times_ns = times[pairs]
        if node.finals:
            both = of_both(due.left.column(IDENTITY), due.right.column(IDENTITY))
            self.identities_taken = both[origins]
        return rows

    def _columns(
        self, due: DueOfBoth, origins: Ints, partners: Sequence[pa.Array]
    ) -> dict[str, pa.Array]:
        """Return the fields of rows of either side, which partners have their places beside."""
        node, left, right = self.node, due.left, due.right
        is_right = origins >= left.num_rows
        mine = pa.array(origins, mask=is_right)
        columns = {one.name: left.column(one.name).take(mine) for one in node.left_fields}
        own = pa.array(origins[is_right] - left.num_rows)
        at = np.arange(len(origins))
        at[is_right] = len(origins) + np.arange(len(own))
        for one, name, column in zip(node.added, self._theirs, partners, strict=True):
            both = pa.concat_arrays([column, right.column(name).take(own)])
            columns[one.name] = both.take(pa.array(at))
        return columns

    def _has_none(self, right: pa.RecordBatch) -> npt.NDArray[np.bool_]:
        """Return which right rows have no partner."""
        lo_ns, hi_ns = -self.node.hi_ns, -self.node.lo_ns
        slots, times = self.slots_of(right, self.right), np.asarray(right.column(TIME))
        counts, _ = self._known_sides[0].near.match(slots, times, lo_ns, hi_ns, 0)
        none: npt.NDArray[np.bool_] = counts == 0
        return none

    def _end(self) -> None:
        self._given_ns, self._freed_ns = self._due_ns, self._frees_ns(self._due_ns)
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

        Raises LimitError where one batch cannot have the texts of one event time, or record.
        """
        try:
            rows = super().take()
            while rows is None and self._given_ns < self.watermark_ns:
                rows = super().take()  # of the next span of time
            return rows
        except _OVERFLOWS as error:
            if not _is_of_texts(error):
                raise
            raise LimitError(
                f"join_interval {self.node.name!r}: with how={self.node.how!r} its rows of one "
                "event time, or of one record, would have more than 2 GiB of a field: leave long "
                f"fields out before the join ({error})"
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
        rows = [*known.near.parts(self._frees_ns(self.watermark_ns)[number]), *known.alone.parts()]
        return pa.Table.from_batches(rows, known.side.held.schema)

    def load(self, tables: Sequence[pa.Table]) -> None:
        """Load dumped state, in which the rows below the mark of the result followed."""
        super().load(tables)
        self._given_ns = self._due_ns = self.watermark_ns


def _is_of_texts(error: Exception) -> bool:
    """Whether a batch could not have all texts."""
    return "exceed 2 GiB" in str(error) or "overflow" in str(error)

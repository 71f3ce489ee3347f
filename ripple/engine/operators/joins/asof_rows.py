"""The rows of an as-of join: each of the left side with the one of the right that counted then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.engine.kernels.runs import last_before
from ripple.engine.kernels.stored import gathered
from ripple.engine.operators.held_rows import PLACE, SLOT, TIME
from ripple.engine.operators.joins.stream_join_rows import StreamJoinRows
from ripple.engine.operators.passed_rows import Numbers
from ripple.engine.operators.rows import Rows
from ripple.engine.operators.waiting import settled_ns
from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ripple.engine.operators.waiting import ByInput, Mark
    from ripple.model.pipeline.nodes import AsofJoin

    Ints = npt.NDArray[np.int64]

_UNNEEDED_MAX = 4096


class AsofRows(StreamJoinRows):
    """Holds rows of both sides until no row on time can change a match; gives those of the left.

    Invariants: every waiting row of a side is at or above the last marks. Of the rows of the right
    side below them, a backward join has the last one of each slot in ``_last``, -1 without one;
    other joins have all in ``_known_numbers``, in their order. Rows without a further match, and
    keys without a row, are dropped once they may be as many as the others.
    """

    node: AsofJoin
    _has_slots = True

    def __init__(self, node: AsofJoin, feeds: Sequence[Sequence[Mark]], by_input: ByInput) -> None:
        """Make an empty node; see StreamJoinRows."""
        super().__init__(node, feeds, by_input)
        self._last = np.empty(0, np.int64)
        self._known_numbers = Numbers()
        self._needed_before = 0
        self._marks_ns: tuple[int, int] | None = None
        self._is_backward = node.strategy == "backward"

    @property
    def bounds_ns(self) -> tuple[int, int]:
        """Up to where each side lets rows follow."""
        return self._bounds_ns(self.left.settled_ns, self.right.settled_ns)

    def _bounds_ns(self, left_ns: int, right_ns: int) -> tuple[int, int]:
        if right_ns not in (watermark.NONE, watermark.END):
            if self.node.strategy != "backward":
                right_ns = _before(right_ns, self.node.tolerance_ns)
            elif self.node.is_strict:
                right_ns += 1  # a row at the mark itself would not match
        return left_ns, right_ns

    @property
    def _known_count(self) -> int:
        return self.right.held.rows.count - self.right.held.count

    @property
    def known_ns(self) -> int:
        """Up to here the rows of the right side are looked at: backward not beyond the left side's.

        Of those below both marks the last one of each key is enough there.
        """
        right_ns = self.right.settled_ns
        return min(self.left.settled_ns, right_ns) if self._is_backward else right_ns

    def take(self) -> Rows | None:
        """Return the rows of the left side with a certain match; None if there are none."""
        self.taken = None
        ends_ns = self.left.settled_ns, self.right.settled_ns
        if ends_ns == self._marks_ns:
            return None  # no row waits below the same marks
        self._marks_ns = ends_ns
        left = self.left.held.take_numbers(min(self._bounds_ns(*ends_ns)))
        right = self.right.held.take_numbers(min(ends_ns) if self._is_backward else ends_ns[1])
        if not len(left) and not len(right):
            return None
        slots, times = (self.left.held.rows.words(name, left) for name in (SLOT, TIME))
        if self._is_backward:
            at = self._last_before(right, slots, times)
        else:
            self._known_numbers.add(right)
            at = self._nearest(slots, times)
        if len(left):
            self.taken = self._with_matches(left, times, self._counted(at))
            self.left.held.forget()
        kept = self.right.held.rows.count + len(self.keys.index)
        if kept > 2 * self._needed_before + _UNNEEDED_MAX:
            self._drop()
        self.given += 0 if self.taken is None else self.taken.count
        return self.taken

    def _with_matches(self, left: Ints, times: Ints, at: Ints) -> Rows | None:
        """Return rows of the left side, each with its match, or with nulls."""
        self._count(at < 0)
        if self.node.how == "inner":
            is_there = at >= 0
            left, times, at = left[is_there], times[is_there], at[is_there]
        if not len(left):
            return None
        places = self.left.held.rows.words(PLACE, left)
        return self._beside(left, times, places, self.right.held.rows, at)

    def _last_before(self, right: Ints, slots: Ints, times: Ints) -> Ints:
        """Return the last row of the right side at these keys and times, -1 for none.

        right: the rows taken out since the last call.
        """
        more = self.keys.capacity - len(self._last)
        if more > 0:
            self._last = np.concatenate([self._last, np.full(max(more, len(self._last)), -1)])
        rows, node = self.right.held.rows, self.node
        theirs = rows.words(SLOT, right), rows.words(TIME, right), right
        at = last_before(self._last, *theirs, slots, times, is_strict=node.is_strict)
        if node.tolerance_ns is not None:
            found = np.flatnonzero(at >= 0)
            at[found[self._are_far(rows.words(TIME, at[found]), times[found])]] = -1
        return at

    def _counted(self, at: Ints) -> Ints:
        """Return matches, with -1 for deleted versions."""
        if self.node.deleted is not None:
            deleted = pa.schema([(self.node.deleted.name, pa.bool_())])
            found = gathered(deleted, len(at), [(self.right.held.rows, deleted.names, at)])
            is_none = found.arrow().column(0).fill_null(False)
            at[is_none.to_numpy(zero_copy_only=False)] = -1
        return at

    def _nearest(self, slots: Ints, times: Ints) -> Ints:
        """Return the rows of the right side that are next at these keys and times, or nearest."""
        node, rows = self.node, self.right.held.rows
        is_asked = np.zeros(self.keys.capacity, np.bool_)
        is_asked[slots[slots >= 0]] = True
        known = self._known_numbers.values
        asked = known[is_asked[rows.words(SLOT, known)]]
        if not len(asked):
            return np.full(len(slots), -1, np.int64)
        theirs = rows.words(TIME, asked)
        found = Near(slots, times, rows.words(SLOT, asked), theirs, is_strict=node.is_strict)
        at = found.after()
        at[self._are_far(theirs[at], times)] = -1
        if node.strategy == "nearest":
            after, at = at, found.before()
            at[self._are_far(theirs[at], times)] = -1
            is_nearer = (at < 0) | (theirs[after] - times < times - theirs[at])
            at = np.where((after >= 0) & is_nearer, after, at)
        return np.where(at >= 0, asked[at], -1)

    def _are_far(self, theirs: Ints, times: Ints) -> npt.NDArray[np.bool_]:
        """Return which times are too far from their partners for a match."""
        assert self.node.tolerance_ns is not None, "only bounded matches are looked at"
        # As unsigned numbers, which no span between two times exceeds.
        later, earlier = np.maximum(times, theirs), np.minimum(times, theirs)
        far: npt.NDArray[np.bool_] = later.view(np.uint64) - earlier.view(np.uint64) > np.uint64(
            self.node.tolerance_ns
        )
        return far

    def _needed(self) -> Ints:
        """Return the taken rows of the right side that may still match."""
        known = self._last[self._last >= 0] if self._is_backward else self._known_numbers.values
        return known[self.right.held.rows.words(TIME, known) >= self.oldest_ns]

    def _drop(self) -> None:
        """Drop the rows that match nothing any more, and the keys that no row has."""
        needed, rows = self._needed(), self.right.held.rows
        needed_slots = rows.words(SLOT, needed)
        numbers = np.searchsorted(self.right.held.keep(needed), needed)
        is_used = np.zeros(self.keys.capacity, np.bool_)
        is_used[rows.words(SLOT)] = True
        waiting = self.left.held.rows.words(SLOT)
        is_used[waiting[waiting >= 0]] = True
        live = self.keys.index.live_slots()
        self.keys.release(live[~is_used[live]])
        self.keys.trim()
        if self._is_backward:
            self._last = np.full(self.keys.capacity, -1)
            self._last[needed_slots] = numbers
        else:
            self._known_numbers = Numbers()
            self._known_numbers.add(numbers)
        self._needed_before = rows.count + len(self.keys.index)

    @property
    def oldest_ns(self) -> int:
        """A row of the right side below it matches none of the left side that still follows."""
        node = self.node
        oldest_ns = self.known_ns if self._is_backward else self.watermark_ns
        if oldest_ns == watermark.NONE or node.strategy == "forward":
            return oldest_ns
        return _before(oldest_ns, node.tolerance_ns)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        held = self.left.held.nbytes + self.right.held.nbytes
        known = self._last.nbytes + self._known_numbers.nbytes
        return held + known + self.keys.index.nbytes

    # --- snapshots ---

    def _known(self) -> list[pa.RecordBatch]:
        held, needed = self.right.held, self._needed()
        places, times = (held.rows.words(name, needed) for name in (PLACE, TIME))
        return held.batches(needed[np.lexsort((places, times))])


class Near:
    """Rows among others by key and time: which of the others with its slot stand beside each.

    The others of each slot are in their order.
    """

    def __init__(
        self, slots: Ints, times: Ints, their_slots: Ints, their_times: Ints, *, is_strict: bool
    ) -> None:
        """Take rows and others; is_strict: whether those at the time of a row are left out."""
        self._slots = np.concatenate([their_slots, slots])
        self._times = np.concatenate([their_times, times])
        self._count = len(their_slots)
        self._is_strict = is_strict

    def before(self) -> Ints:
        """Return the last one at the time of each row or before, -1 if there is none."""
        order = self._order(mine_last=not self._is_strict)
        places = np.where(order < self._count, np.arange(len(order)), -1)
        return self._found(order, np.maximum.accumulate(places))

    def after(self) -> Ints:
        """Return the first one at the time of each row or after, -1 if there is none."""
        order = self._order(mine_last=self._is_strict)
        places = np.where(order < self._count, np.arange(len(order)), len(order))
        beside = np.minimum.accumulate(places[::-1])[::-1]
        return self._found(order, np.where(beside < len(order), beside, -1))

    def _order(self, *, mine_last: bool) -> Ints:
        is_mine = np.arange(len(self._slots)) >= self._count
        return np.lexsort((is_mine == mine_last, self._times, self._slots))

    def _found(self, order: Ints, beside: Ints) -> Ints:
        mine = order >= self._count
        found, row = order[beside[mine]], order[mine]
        is_same = (beside[mine] >= 0) & (self._slots[found] == self._slots[row])
        at = np.empty(len(self._slots) - self._count, np.int64)
        at[row - self._count] = np.where(is_same, found, -1)
        return at


def _before(time_ns: int, span_ns: int | None) -> int:
    """Return a time less a span, of which there is one, or no bound."""
    return watermark.NONE if span_ns is None else settled_ns(time_ns, span_ns)

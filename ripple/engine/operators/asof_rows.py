"""The rows of an as-of join: each of the left side with the one of the right that counted then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.engine.kernels.columns import Columns
from ripple.engine.kernels.runs import last_before
from ripple.engine.operators.held_rows import IDENTITY, PLACE, TIME
from ripple.engine.operators.passed_rows import PassedRows
from ripple.engine.operators.rows import Rows
from ripple.engine.operators.stream_join_rows import StreamJoinRows
from ripple.engine.operators.waiting import settled_ns
from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ripple.engine.operators.waiting import ByInput, Mark
    from ripple.model.pipeline.nodes import AsofJoin

    Ints = npt.NDArray[np.int64]

_UNNEEDED_MAX = 4096
_NOTHING = np.empty(0, np.int64)


class AsofRows(StreamJoinRows):
    """Holds rows of both sides until no row on time can change a match; gives those of the left.

    Invariants: every row that a side holds is at or above the last marks; ``_passed`` has the rows
    of the right side below them that may still match, in their order. Others are dropped from it,
    and keys that no row has, once they may be as many. ``_last`` has the number of the last one of
    each slot, -1 for none, where matches are looked for backward.
    """

    node: AsofJoin

    def __init__(self, node: AsofJoin, feeds: Sequence[Sequence[Mark]], by_input: ByInput) -> None:
        """Make an empty node; see StreamJoinRows."""
        super().__init__(node, feeds, by_input)
        self._passed = PassedRows(self.right.held.schema)
        self._last = np.empty(0, np.int64)
        self._needed_before = 0

    @property
    def bounds_ns(self) -> tuple[int, int]:
        """Up to where each side lets rows follow."""
        left_ns, right_ns = (side.settled_ns for side in self.sides)
        if right_ns not in (watermark.NONE, watermark.END):
            if self.node.strategy != "backward":
                right_ns = _before(right_ns, self.node.tolerance_ns)
            elif self.node.is_strict:
                right_ns += 1  # a row at the mark itself would not match
        return left_ns, right_ns

    @property
    def _known_count(self) -> int:
        return len(self._passed)

    @property
    def _is_backward(self) -> bool:
        return self.node.strategy == "backward"

    @property
    def known_ns(self) -> int:
        """Up to here the rows of the right side are looked at: backward not beyond the left side's.

        Of those below both marks the last one of each key is enough there.
        """
        ends_ns = [side.settled_ns for side in self.sides]
        return min(ends_ns) if self._is_backward else ends_ns[1]

    def take(self) -> Rows | None:
        """Return the rows of the left side with a certain match; None if there are none."""
        self.taken = None
        left = self.left.held.take_below(self.watermark_ns)
        right = self.right.held.take_below(self.known_ns)
        if left is None and right is None:
            return None
        before = len(self._passed)
        if right is not None:
            slots = self.slots_of(right, self.right)
            self._passed.add(right, slots, np.asarray(right.column(TIME)))
        slots = _NOTHING if left is None else self.slots_of(left, self.left)
        times = _NOTHING if left is None else np.asarray(left.column(TIME))
        at = self._last_before(before, slots, times) if self._is_backward else None
        if left is not None:
            self.taken = self._with_matches(left, self._matches(slots, times, at))
        if len(self._passed) + len(self.keys.index) > 2 * self._needed_before + _UNNEEDED_MAX:
            self._drop()
        self.given += 0 if self.taken is None else self.taken.count
        return self.taken

    def _with_matches(self, left: pa.RecordBatch, at: Ints) -> Rows | None:
        """Return rows of the left side, each with its match, or with nulls."""
        self._count(at < 0)
        if self.node.how == "inner":
            left, at = left.filter(pa.array(at >= 0)), at[at >= 0]
        if not left.num_rows:
            return None
        columns = {field.name: left.column(field.name) for field in self.node.left_fields}
        added = zip(self.node.added, self.node.right_fields, strict=True)
        columns |= {one.name: self._passed.column(of.name, at) for one, of in added}
        rows = Rows(Columns(columns), left.num_rows, np.array(left.column(PLACE)))
        rows.times_ns = np.array(left.column(TIME))
        if self.node.finals:
            self.identities_taken = np.array(left.column(IDENTITY))
        return rows

    def _last_before(self, first: int, slots: Ints, times: Ints) -> Ints:
        """Return the last row of the right side at these keys and times, -1 for none.

        first: of the rows added since the last call.
        """
        more = self.keys.capacity - len(self._last)
        if more > 0:
            self._last = np.concatenate([self._last, np.full(max(more, len(self._last)), -1)])
        theirs = self._passed.slots[first:], self._passed.times[first:]
        is_strict = self.node.is_strict
        return last_before(self._last, *theirs, first, slots, times, is_strict=is_strict)

    def _matches(self, slots: Ints, times: Ints, at: Ints | None) -> Ints:
        """Return which of the rows of the right side match at these keys and times, -1 for none.

        at: the last ones before them, where those are known.
        """
        if at is None:
            at = self._beside(slots, times)
        elif self.node.tolerance_ns is not None:
            self._drop_far(at, times, self._passed.times)
        if self.node.deleted is not None:
            is_none = self._passed.column(self.node.deleted.name, at).fill_null(False)
            at[is_none.to_numpy(zero_copy_only=False)] = -1
        return at

    def _beside(self, slots: Ints, times: Ints) -> Ints:
        """Return the rows of the right side that are next at these keys and times, or nearest."""
        node = self.node
        is_asked = np.zeros(self.keys.capacity, np.bool_)
        is_asked[slots[slots >= 0]] = True
        asked = np.flatnonzero(is_asked[self._passed.slots])
        if not len(asked):
            return np.full(len(slots), -1, np.int64)
        theirs = self._passed.times[asked]
        found = Near(slots, times, self._passed.slots[asked], theirs, is_strict=node.is_strict)
        at = found.after()
        self._drop_far(at, times, theirs)
        if node.strategy == "nearest":
            after, at = at, found.before()
            self._drop_far(at, times, theirs)
            is_nearer = (at < 0) | (theirs[after] - times < times - theirs[at])
            at = np.where((after >= 0) & is_nearer, after, at)
        return np.where(at >= 0, asked[at], -1)

    def _drop_far(self, at: Ints, times: Ints, theirs: Ints) -> None:
        if len(theirs):
            at[np.abs(times - theirs[at]) > self.node.tolerance_ns] = -1

    def _needed(self) -> Ints:
        """Return which of the rows of the right side may still match."""
        if self._is_backward:  # the last one of each key
            needed = np.sort(self._last[self._last >= 0])
        else:
            needed = np.arange(len(self._passed))
        return needed[self._passed.times[needed] >= self.oldest_ns]

    def _drop(self) -> None:
        """Drop the rows that match nothing any more, and the keys that no row has."""
        needed = self._needed()
        self._passed = self._passed.some(needed)
        slots = self._passed.slots
        is_used = np.zeros(self.keys.capacity, np.bool_)
        is_used[slots] = True
        live = self.keys.index.live_slots()
        self.keys.release(live[~is_used[live]])
        self.keys.trim()
        if self._is_backward:
            self._last = np.full(self.keys.capacity, -1)
            self._last[slots] = np.arange(len(slots))
        self._needed_before = len(needed) + len(self.keys.index)

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
        return held + self._passed.nbytes + self._last.nbytes + self.keys.index.nbytes

    # --- snapshots ---

    def _known(self) -> list[pa.RecordBatch]:
        return [self._passed.rows(self._needed())]


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

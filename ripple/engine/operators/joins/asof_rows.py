"""The rows of an as-of join: each of the left side with the one of the right that counted then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ripple.engine.kernels.asof import Matches, Taken
from ripple.engine.kernels.columns import Columns
from ripple.engine.kernels.stored import Beside
from ripple.engine.operators.held_rows import IDENTITY, PLACE, SLOT, TIME
from ripple.engine.operators.joins.stream_join_rows import StreamJoinRows
from ripple.engine.operators.rows import Rows
from ripple.engine.operators.waiting import settled_ns
from ripple.engine.snapshots.held_saving import Sorted
from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ripple.engine.operators.waiting import ByInput, Mark
    from ripple.engine.snapshots.held_saving import HeldSaving
    from ripple.model.pipeline.waiting_nodes import AsofJoin

    Ints = npt.NDArray[np.int64]

batch_of = Taken.batch  # raises OverflowError for more than one batch can have
_UNNEEDED_MAX = 4096
_UNUSED_SHARE = 8


class AsofRows(StreamJoinRows):
    """Holds rows of both sides until no row on time can change a match; gives those of the left.

    Invariants: every waiting row of a side is at or above the last marks. ``_matches`` knows those
    of the right side below them, a backward join the last one of each slot alone. Rows without a
    further match, and keys without a row, are dropped once they may be as many as the others;
    keys that are few beside the rows stay.
    ``_due`` has rows of which those from ``_begin`` on are taken next; None without any.
    """

    node: AsofJoin
    _has_slots = True

    def __init__(self, node: AsofJoin, feeds: Sequence[Sequence[Mark]], by_input: ByInput) -> None:
        """Make an empty node; see StreamJoinRows."""
        super().__init__(node, feeds, by_input)
        left, right = self.left.held, self.right.held
        self._is_inner = node.how == "inner"
        self._matches = Matches(
            left.waiting,
            right.waiting,
            SLOT,
            self.keys.index,
            Beside(self._schema, [(left.rows, self._mine), (right.rows, self._theirs)]),
            latenesses_ns=[side.lateness_ns for side in self.sides],
            strategy=node.strategy,
            is_strict=node.is_strict,
            is_inner=self._is_inner,
            tolerance_ns=node.tolerance_ns,
            deleted=None if node.deleted is None else node.deleted.name,
        )
        self._is_read = True
        self._needed_before = 0
        self._due: Taken | None = None
        self._begin = 0
        self._marks = [side.mark for side in self.sides]
        self._marks_ns = (watermark.NONE, watermark.NONE)
        self._is_backward = node.strategy == "backward"

    @property
    def bounds_ns(self) -> tuple[int, int]:
        """Up to where each side lets rows follow."""
        return self._matches.bounds(self.left.watermark_ns, self.right.watermark_ns)

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

    def stay_unread(self) -> None:
        """From now on only count the rows: others show them at once."""
        self._is_read = False

    def take(self) -> Rows | None:
        """Return the rows of the left side with a certain match; None if there are none."""
        self.taken, due = None, self._due
        if due is None:
            left, right = self._marks
            marks_ns = left.watermark_ns, right.watermark_ns
            if marks_ns == self._marks_ns:
                return None  # no row waits below the same marks
            self._marks_ns = marks_ns
            due = self._matches.settle(*marks_ns)
            if due is None:
                return None
            self._unmatched += due.unmatched
            self._matched += due.count - (0 if self._is_inner else due.unmatched)
            self.given += due.count
        if due.count and self._is_read:
            self.taken = self._give(due)
            if self._due is not None:
                return self.taken
        self.left.held.forget()
        kept = self.right.held.rows.count + len(self.keys.index)
        is_due = 2 * kept > 3 * self._needed_before + 2 * _UNNEEDED_MAX
        if is_due and self.right.held.may_drop():
            self._drop()
        return self.taken

    def _give(self, due: Taken) -> Rows:
        """Return the next rows, as many as one batch can have; the others stay in ``_due``."""
        first, end = self._begin, due.count
        while True:
            try:
                batch = batch_of(due, first, end)
                break
            except OverflowError:
                if end - first < 2:
                    raise
                end = first + (end - first) // 2
        rows = Rows(Columns(batch, self._layout), end - first, due.places(first, end))
        rows.times_ns = due.times(first, end)
        if self.node.finals:
            identities = self.left.held.rows.words(IDENTITY, due.numbers(first, end))
            self.identities_taken = identities
        self._due, self._begin = (None, 0) if end == due.count else (due, end)
        return rows

    def _drop(self) -> None:
        """Drop the rows that match nothing any more, and the keys that no row has."""
        self._matches.drop(self.oldest_ns)
        count, kept = len(self.keys.index), self.right.held.rows.count
        if _UNUSED_SHARE * count > kept:  # else they are few beside the rows
            is_used = self._matches.used()
            if _UNUSED_SHARE * (count - np.count_nonzero(is_used)) > count:
                live = self.keys.index.live_slots()
                self.keys.release(live[~is_used[live]])
                self.keys.trim()
        self._needed_before = kept + len(self.keys.index)

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
        return held + self._matches.nbytes + self.keys.index.nbytes

    # --- snapshots ---

    def savings(self) -> tuple[HeldSaving, HeldSaving]:
        """Begin to dump the rows of each side that are held, or may still match."""
        held = self.right.held

        def in_order(numbers: Ints) -> Ints:
            places, times = (held.rows.words(name, numbers) for name in (PLACE, TIME))
            return numbers[np.lexsort((places, times))]

        known = Sorted(self._matches.needed(self.oldest_ns), in_order)
        return self.left.held.saving(), held.saving(numbers=[known])


def _before(time_ns: int, span_ns: int | None) -> int:
    """Return a time less a span, of which there is one, or no bound."""
    return watermark.NONE if span_ns is None else settled_ns(time_ns, span_ns)

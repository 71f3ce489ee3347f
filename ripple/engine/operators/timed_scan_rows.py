"""The rows of a scan with timers: of a function of each row, and of others at their times."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from operator import itemgetter
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pyarrow as pa

from ripple.engine.kernels.columns import Columns
from ripple.engine.operators.held_rows import PLACE
from ripple.engine.operators.rows import RejectedRow, Rows, refusal_of
from ripple.engine.operators.step_scan_rows import StepScanRows
from ripple.engine.operators.timed_step import Timers
from ripple.engine.snapshots.internal import internal
from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    import numpy.typing as npt

    from ripple.engine.operators.feeds import Feeds
    from ripple.engine.operators.state_step import Stored
    from ripple.engine.operators.waiting import ByInput
    from ripple.model.pipeline.waiting_nodes import StepScan

    Ints = npt.NDArray[np.int64]

_FIRED = internal("fired")
_NONE = watermark.NONE
_PLACED = itemgetter(0, 1)
_Made: TypeAlias = "tuple[int, int, int, Stored | str]"
"""The time and the place of a row or a timer, its slot, and its result, or why there is none."""


class _Key:
    """The rows of a key so far.

    place, row_ns: of its last row. now_ns: the time of that, or of the last timer called since.
    fired: how many were. due_ns: the earliest time at which the key is looked at, NONE for never.
    """

    __slots__ = ("due_ns", "fired", "now_ns", "place", "row_ns")

    def __init__(self) -> None:
        self.place, self.fired = 0, 0
        self.row_ns = self.now_ns = self.due_ns = _NONE


class TimedScanRows(StepScanRows):
    """Calls functions with the state of a key and its rows, and at the times that the state names.

    A timer that is due at T gives a row at T - 1, with the place of the last row of its key and the
    next index. Invariants: ``_of`` has the key of each slot, and ``_due_keys`` each key with a
    timer at its ``due_ns``, and at most as many other times as there are slots; no timer is due
    below the last mark.
    """

    def __init__(self, node: StepScan, feeds: Feeds, by_input: ByInput) -> None:
        """Make an empty node; see HeldByKey."""
        super().__init__(node, feeds, by_input)
        self._timers, self._call_step = Timers(node), self.step.call
        self._of: list[_Key] = []
        self._due_keys: list[tuple[int, int]] = []

    def _made(self, rows: Rows, slots: Ints) -> Rows | None:
        times = np.asarray(rows.times_ns)
        self._by_slot(slots, times)
        assert rows.offsets is not None, "rows of records have places"
        made: list[_Made] = []
        each = (slots.tolist(), times.tolist(), rows.offsets.tolist(), self._given(rows, slots))
        for slot, time_ns, place, row in zip(*each, strict=True):
            if row is not None:
                if _NONE < self._of[slot].due_ns <= time_ns:
                    self._call_due(slot, time_ns, made)
                self._step(slot, time_ns, place, row, made)
        until_ns = min(int(times[-1]), self.open_ns) if self._due else self.watermark_ns
        self._call_all(until_ns, made)
        return self._shown(made)

    def _made_by(self, mark_ns: int) -> Rows | None:
        made: list[_Made] = []
        self._call_all(mark_ns, made)
        return self._shown(made)

    def _step(self, slot: int, time_ns: int, place: int, row: Stored, made: list[_Made]) -> None:
        """Call the function with a row."""
        of, before = self._of[slot], self._states[slot]
        if self._timers.is_over(of.row_ns, time_ns):
            before = self.initial
        of.row_ns = of.now_ns = time_ns
        of.place, of.fired = place, 0
        try:
            after, result = self._call_step(before, row)
        except (Exception, SystemExit) as error:  # any error of a user's function
            after = before
            made.append((time_ns, place, slot, refusal_of(self.node.name, error)))
        else:
            if result is not None:
                made.append((time_ns, place, slot, result))
        self._states[slot] = after
        due_ns = of.due_ns
        for at in self._timers.places:
            # Most set a timer later than before: it is looked at when that was due.
            if after[at] is not None and (due_ns == _NONE or after[at] < due_ns):
                self._arm(slot)
                return

    def _next(self, slot: int, of: Container[int] | None = None) -> tuple[int, int] | None:
        """Return the time of the next timer of a key, and which it is; of: of these."""
        among = self._timers.every if of is None else of
        return self._timers.next(self._states[slot], self._of[slot].now_ns, among)

    def _call_due(self, slot: int, until_ns: int, made: list[_Made]) -> None:
        """Call the timers of a key that are due up to a time, in their order."""
        while (due := self._next(slot)) is not None and due[0] <= until_ns:
            if self._timers.is_over(self._of[slot].row_ns, due[0]):
                return
            self._call(slot, *due, made)

    def _call(self, slot: int, time_ns: int, number: int, made: list[_Made]) -> None:
        """Call a timer."""
        of = self._of[slot]
        of.now_ns, of.fired = time_ns - 1, of.fired + 1
        after, result, why = self._timers.call(self._states[slot], time_ns, number, of.fired)
        self._states[slot] = after
        shown = result if why is None else why
        if shown is not None:
            made.append((of.now_ns, of.place + of.fired, slot, shown))

    def _call_all(self, mark_ns: int, made: list[_Made]) -> None:
        """Call all timers that are due up to a mark; at the end of inputs those set then, too."""
        has_ended = mark_ns == watermark.END
        until_ns = self.open_ns if has_ended else mark_ns
        while self._due_keys and self._due_keys[0][0] <= until_ns:
            due_ns, slot = heappop(self._due_keys)
            if self._of[slot].due_ns == due_ns:
                self._of[slot].due_ns = _NONE
                self._call_due(slot, until_ns, made)
                self._arm(slot, until_ns)
        if has_ended:
            for slot in self._keys.index.live_slots().tolist():
                self._call_last(slot, made)
            self._due_keys.clear()

    def _call_last(self, slot: int, made: list[_Made]) -> None:
        """Call each timer of a key that is set, and let none be set any more."""
        left, row_ns = self._timers.set_in(self._states[slot]), self._of[slot].row_ns
        while (due := self._next(slot, left)) is not None:
            if self._timers.is_over(row_ns, due[0]):
                break
            left.remove(due[1])
            self._call(slot, *due, made)
        self._states[slot] = self._timers.off(self._states[slot])

    def _arm(self, slot: int, above_ns: int = _NONE) -> None:
        """Have a key looked at when its next timer is due; above_ns: only above a time."""
        due, of = self._next(slot), self._of[slot]
        if due is not None and due[0] > above_ns and (of.due_ns == _NONE or due[0] < of.due_ns):
            of.due_ns = due[0]
            heappush(self._due_keys, (due[0], slot))
            if len(self._due_keys) > 2 * len(self._of):
                self._forget_moved()

    def _forget_moved(self) -> None:
        """Drop the times of keys that are looked at earlier now, or have ended."""
        each = enumerate(self._of)
        self._due_keys = [(of.due_ns, slot) for slot, of in each if of.due_ns != _NONE]
        heapify(self._due_keys)

    def _shown(self, made: list[_Made]) -> Rows | None:
        """Return the rows made, in their order; count the failed ones."""
        if not made:
            return None
        made.sort(key=_PLACED)
        times, places, slots, results = zip(*made, strict=True)
        keys = self._keys.arrays(np.array(slots, np.int64))
        columns = dict(zip(self._names, keys, strict=True))
        rows = Rows(Columns(columns), len(made), np.array(places, np.int64))
        rows.times_ns = np.array(times, np.int64)
        failed = {at: one for at, one in enumerate(results) if isinstance(one, str)}
        if failed:
            name = self.node.name
            self._lose(rows, [RejectedRow(at, name, why) for at, why in failed.items()])
            rows.keep(~np.isin(np.arange(len(made)), list(failed)))
            rows.origin = None
        if not rows.count:
            return None
        self.step.make(rows, [one for one in results if not isinstance(one, str)])
        return rows

    def _grow(self, capacity: int) -> None:
        super()._grow(capacity)
        self._of += [_Key() for _ in range(capacity - len(self._of))]

    def _end(self, slots: Ints) -> None:
        super()._end(slots)
        for slot in slots.tolist():
            self._of[slot] = _Key()

    @property
    def nbytes(self) -> int:
        """Bytes held, about 200 more of them by state and 120 by time in ``_due_keys``."""
        return super().nbytes + 200 * len(self._of) + 120 * len(self._due_keys)

    def _state_columns(self, slots: Ints) -> tuple[list[pa.Field], list[pa.Array]]:
        fields, arrays = super()._state_columns(slots)
        of = [self._of[slot] for slot in slots.tolist()]
        own = [pa.array([one.place for one in of], pa.int64())]
        own.append(pa.array([one.fired for one in of], pa.int64()))
        named = [pa.field(PLACE, pa.int64()), pa.field(_FIRED, pa.int64())]
        return [*fields, *named], [*arrays, *own]

    def _load_states(self, slots: Ints, columns: Sequence[pa.ChunkedArray]) -> None:
        super()._load_states(slots, columns[:-2])
        places, fired = (one.to_pylist() for one in columns[-2:])
        for slot, place, count in zip(slots.tolist(), places, fired, strict=True):
            of = self._of[slot]
            of.row_ns = of.now_ns = int(self._last[slot])
            of.place, of.fired = place, count
            self._arm(slot)

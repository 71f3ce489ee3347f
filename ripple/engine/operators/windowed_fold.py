"""Folds over windows of events: open windows, their shown rows, and their ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.engine.kernels.keyed import Keyed
from ripple.engine.operators.event_fold import EventFold
from ripple.engine.snapshots.internal import internal
from ripple.engine.snapshots.slot_arrays import grown
from ripple.model.keys.slots import SlotSet
from ripple.model.keys.space import PairKeys, key_space
from ripple.model.schema.types import Field, Int64
from ripple.model.window import OnCount, OnEveryElement, OnInterval, Session, watermark
from ripple.model.window.assign import reached_count
from ripple.model.window.book import (
    AlignedWindows,
    SessionWindows,
    TradingWindows,
    ZonedWindows,
    windows_of,
)
from ripple.model.window.timers import Timers

if TYPE_CHECKING:
    from collections.abc import Collection

    import numpy.typing as npt

    from ripple.engine.graph.node import Graph
    from ripple.engine.operators.rows import Rows
    from ripple.model.pipeline.nodes import Fold

    Ints = npt.NDArray[np.int64]


WINDOW_START = Field("window_start_ns", Int64())
_NONE = np.empty(0, np.int64)
_ELEMENTS, _UNSHOWN = internal("elements"), internal("unshown")
# Of a row that could not be computed when it was to be shown: the accumulators have moved on.
FAILED = internal("failed_step"), internal("failed_reason")


class WindowedFold(EventFold):
    """A fold over windows of events: one row per key and window.

    A window is shown as its trigger says while it is open, always up to date once the watermark
    has reached its end, and over (its state freed, its last row final) at end + lateness. A row
    that cannot be computed when it is to be shown is not there until it is shown the next time. No
    accepted event can fall in a window that is over, since the merged watermark is never ahead of
    the event's own.
    """

    def __init__(self, graph: Graph, fold: Fold) -> None:
        assert fold.timing is not None
        self.spec = fold.timing
        self.pairs = PairKeys(key_space(fold.key), WINDOW_START)
        super().__init__(graph, fold, self.pairs)
        self.keys = self.pairs.left
        self._by_key = Keyed(self.keys, self._key_names)
        self._bounds = self._row_bounds
        self.windows = windows_of(self.spec.assigner, self.pairs)
        self.timers = Timers()
        self.over: list[Ints] = []
        self.newly_over: list[Ints] | None = None
        """Those of ``over`` that no stream of final rows has taken; None if there is none."""
        self.absorbed: list[Ints] = []
        trigger = self.spec.trigger
        self.interval_ns = trigger.interval_ns if isinstance(trigger, OnInterval) else None
        self._shows_always = isinstance(trigger, OnEveryElement)
        self._count = trigger.count if isinstance(trigger, OnCount) else 0
        self._elements = np.zeros(0, np.int64)  # by slot, for OnCount
        self._unshown = SlotSet() if isinstance(trigger, OnInterval) else None
        # The shown rows of an open window are state then: accumulators do not determine them.
        self._shows_parts = bool(self._count) or self._unshown is not None
        # How it nearly always is: tumbling windows that show nothing while a batch is added.
        self._tumbling = None
        if isinstance(self.windows, AlignedWindows | ZonedWindows) and not self._shows_parts:
            drops = isinstance(self.windows, TradingWindows) and self.windows.drops
            self._tumbling = None if drops else self.windows.tumbling
        # Where a session is shown when it joins another depends on the very moment, so sessions
        # that show partial results take one event at a time.
        self.stepwise = isinstance(self.spec.assigner, Session) and isinstance(
            trigger, (OnCount, OnInterval)
        )

    def admits_all(self, required: Collection[str]) -> bool:
        """Return whether ``admit`` rejects nothing where these fields are not null."""
        return not isinstance(self.windows, TradingWindows) and super().admits_all(required)

    def admit(self, rows: Rows) -> None:
        """Reject also the events that a calendar has no window for."""
        if isinstance(self.windows, TradingWindows):
            assert rows.times_ns is not None
            rows.reject(self.windows.refused(rows.times_ns), self.spec.name)
        super().admit(rows)

    def apply(self, rows: Rows, crossing: int) -> None:
        """Add events to their windows, showing partial results where the trigger says so."""
        if self._tumbling is None:
            self._assign(rows, crossing)
            return
        new = self._by_key.add_to_windows(
            rows, self._tumbling, self.space, self.states, self.touched, self.ledger
        )
        if len(new):
            self.timers.arm_new(new, self.windows.ends_ns(new), self.space.capacity)

    def _assign(self, rows: Rows, crossing: int) -> None:
        """Add events to windows of any kind, in steps if some are shown in between."""
        assert rows.times_ns is not None
        assigned = self.windows.assign(self._by_key.slots(rows), rows.times_ns)
        slots, index = assigned.slots, assigned.rows
        capacity = self.space.capacity
        # Slots touched since the last settling were adopted and armed then.
        new = self.touched.add(slots, capacity)
        if len(assigned.absorbed):
            self.space.adopt(np.concatenate((new, assigned.absorbed)))
        elif len(new):
            self.space.adopt(new)
        self.states.reserve(capacity)
        if self.ledger.marks:
            self.ledger.copy(slots)
        if len(new):
            self.timers.arm_new(new, self.windows.ends_ns(new), capacity)
        if len(assigned.absorbed):
            self._join(assigned.into, assigned.absorbed)
        if self._count:
            self._elements = grown(self._elements, capacity, 0)
            reached, fired = reached_count(slots, self._elements, self._count)
            self._add_parts(slots, rows, index, reached.view(np.bool_), fired)
        elif self._unshown is not None and crossing >= 0:
            origin = np.arange(rows.count) if rows.origin is None else rows.origin
            before = origin[slice(None) if index is None else index] <= crossing
            self._unshown.add(slots[before], capacity)
            self._add_parts(slots, rows, index, before, self._live(self._unshown.take()))
            self._unshown.add(slots[~before], capacity)
        else:
            self.states.add(slots, rows, index)
            if self._unshown is not None:
                self._unshown.add(slots, capacity)

    def _add_parts(
        self,
        slots: Ints,
        rows: Rows,
        index: Ints | None,
        before: npt.NDArray[np.bool_],
        shown: Ints,
    ) -> None:
        """Add the entries of ``before``, show rows as they are then, and add the others."""
        entries = np.arange(rows.count) if index is None else index
        self.states.add(slots[before], rows, entries[before])
        self.show(shown)
        self.states.add(slots[~before], rows, entries[~before])

    def _join(self, into: Ints, absorbed: Ints) -> None:
        """Let sessions become part of others; their rows are withdrawn, their slots freed later."""
        self.ledger.copy(absorbed)
        self.states.merge(into, absorbed)
        self.timers.disarm(absorbed)
        self._withdraw(absorbed)
        self.touched.add(into, self.space.capacity)
        self.absorbed.append(absorbed)
        self.frees = True
        if self._count:
            self._elements = grown(self._elements, self.space.capacity, 0)
            np.add.at(self._elements, into, self._elements[absorbed])
            self._elements[absorbed] = 0

    def _withdraw(self, slots: Ints) -> None:
        self.column.erase(slots)
        self.uncomputable.forget(slots)

    def show(self, slots: Ints) -> None:
        """Let the rows of ``slots`` show their present results."""
        if self._shows_parts:
            self.ledger.change(slots)
        super().show(slots)

    def settle(self, watermark_ns: int) -> None:
        """Show windows at their end, and changes after it; note finished ones."""
        if self.ledger.marks:
            self.ledger.mark(self.touched.members())
        self._pop_due(watermark_ns)
        touched = self._live(self.touched.take())
        if not len(touched):
            return
        if isinstance(self.windows, SessionWindows):
            self._wait_again(touched, watermark_ns)
        self.show(touched if self._shows_always else self.windows.ended(touched, watermark_ns))

    def _wait_again(self, touched: Ints, watermark_ns: int) -> None:
        """Let sessions with an end beyond the watermark wait for that end again."""
        ends = self.windows.ends_ns(touched)
        is_open = ends > watermark_ns
        self.timers.bring_forward(touched[is_open], ends[is_open])
        # One that had ended and is open again is withdrawn, unless it shows partial results.
        if not self._shows_always and not self.stepwise:
            self._withdraw(touched[is_open])

    def _pop_due(self, watermark_ns: int) -> None:
        due = self.timers.pop_due(watermark_ns)
        if not len(due):
            return
        ends = self.windows.ends_ns(due)
        closes = ends + self.spec.lateness_ns
        self.touched.add(due[ends <= watermark_ns], self.space.capacity)
        over = closes <= watermark_ns
        self.over.append(due[over])
        self.frees = True
        if self.newly_over is not None:
            self.newly_over.append(due[over])
        waiting = ~over
        next_ns = np.where(ends <= watermark_ns, closes, ends)
        self.timers.arm(due[waiting], next_ns[waiting])

    def advance(self, before_ns: int, after_ns: int) -> None:
        """Show the rows that waited for an interval entered without an event."""
        interval_ns = self.interval_ns
        if interval_ns is not None and after_ns != watermark.NONE:
            first = before_ns == watermark.NONE
            if first or after_ns // interval_ns > before_ns // interval_ns:
                self.show_waiting()
        if self.stepwise:
            self.settle(after_ns)

    def show_waiting(self) -> None:
        """Show the rows that waited for a new interval of the watermark: it has begun."""
        if self._unshown is not None:
            self.show(self._live(self._unshown.take()))

    def expired(self) -> Ints:
        """Return the windows that are over, once."""
        if not self.over:
            return _NONE
        over = np.concatenate(self.over)
        self.over.clear()
        return over

    def free(self, expired: Ints) -> None:
        """Free windows that are over and sessions that became part of others."""
        self.frees = False
        gone = expired
        if self.absorbed:
            gone = np.concatenate((expired, *self.absorbed))
            self.absorbed.clear()
        if not len(gone):
            return
        self.ledger.free(gone)
        self.uncomputable.finalize(expired)
        self.column.retire(gone)
        self.windows.forget(expired)
        self.states.clear(gone)
        if self._count:
            self._elements[gone] = 0
        if self._unshown is not None:
            unshown = self._unshown.take()
            self._unshown.add(unshown[~np.isin(unshown, gone)], self.space.capacity)
        self.space.release(gone)

    def _live(self, slots: Ints) -> Ints:
        """Return the slots that were not absorbed since the last sweep."""
        if not self.absorbed:
            return slots
        return slots[~np.isin(slots, np.concatenate(self.absorbed))]

    def _row_bounds(self, slots: Ints) -> dict[str, Any]:
        """Return the window fields of the rows; the start only if a step on results reads it."""
        bounds = {"window_end_ns": self.windows.ends_ns(slots)}
        if self.fold.steps:
            bounds["window_start_ns"] = self.pairs.index.pairs_at(slots)[1]
        return bounds

    # --- snapshots ---

    def dump_rows(self, slots: Ints) -> dict[str, pa.Array]:
        """Return keys and accumulators; with partial results also the shown rows."""
        columns = super().dump_rows(slots)
        if self._shows_parts:
            columns |= self.result_rows.dump(self.column, slots)
            columns |= zip(FAILED, self.uncomputable.dump(slots), strict=True)
        return columns

    def dump_marks(self, slots: Ints) -> dict[str, pa.Array]:
        """Return window ends, which sessions move, and how far partial results are."""
        columns = {"window_end_ns": pa.array(self.windows.ends_ns(slots))}
        if self._count:
            columns[_ELEMENTS] = pa.array(self._elements[slots])
        if self._unshown is not None:
            columns[_UNSHOWN] = pa.array(self._unshown.has(slots))
        return columns

    @property
    def columns(self) -> list[str]:
        """Those of a fold without windows, the window's end, then those of partial results."""
        first = list(EventFold.dump_rows(self, _NONE))
        end, *others = self.dump_marks(_NONE)
        return [
            *first,
            end,
            *(name for name in self.dump_rows(_NONE) if name not in first),
            *others,
        ]

    def load(self, table: pa.Table, watermark_ns: int) -> None:
        """Load dumped state, and show the rows that were shown at that watermark."""
        slots = self._load_slots(table)
        ends = table.column("window_end_ns").to_numpy()
        if isinstance(self.windows, SessionWindows):
            keys, starts = self.pairs.index.pairs_at(slots)
            first = np.argsort(starts, kind="stable")
            self.windows.book.restore(
                keys[first], starts[first], ends[first], slots[first], self.pairs.index
            )
        capacity = self.space.capacity
        self.states.reserve(capacity)
        self.states.load(slots, table)
        self.timers.arm_new(slots, ends, capacity)
        self.touched.add(slots, capacity)
        if self._count:
            self._elements = grown(self._elements, capacity, 0)
            self._elements[slots] = table.column(_ELEMENTS).to_numpy()
        if self._unshown is not None:
            self._unshown.add(slots[table.column(_UNSHOWN).to_numpy()], capacity)
        if self._shows_parts:
            self.result_rows.load(self.column, slots, table)
            self.uncomputable.load(slots, *(table.column(name) for name in FAILED))
        self.settle(watermark_ns)

"""The rows of a scan and of its timers, as soon as they are read."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

import numpy as np

from ripple.engine.operators.rows import Rows
from ripple.engine.operators.step_table_rows import StepTableRows
from ripple.engine.operators.timed_table_rows import TimedStepLogs
from ripple.model.keys.space import key_columns
from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt
    import pyarrow as pa

    from ripple.engine.graph.node import Graph
    from ripple.engine.operators.timed_step import Fired, Run
    from ripple.engine.operators.timed_table_rows import TimedTableScanRows
    from ripple.model.pipeline.nodes import RowTable

    Ints = npt.NDArray[np.int64]


class TimedStepTableRows(StepTableRows):
    """The rows of a scan and of its timers until they are final.

    A timer is called once the watermark reaches its time. Its row has the last nanosecond before
    this time, and the place of its key's last row, with the next index. It is final with the rows
    of its time. Invariants between stabilizations: ``_fired`` has the open rows of timers by place,
    with their slots and the slots of their keys, and ``_place_of`` their places by slot;
    ``_before`` has the open rows of the timers before a row, by the row's slot. ``_runs`` has the
    keys of ``_of_key`` after all called timers, with the rows of the timers behind the last row.
    ``_due`` has the due times of keys' timers, and ``_ends`` the times of timers' rows; stale
    entries in both are without effect.
    """

    def __init__(self, graph: Graph, fold: RowTable, scan: TimedTableScanRows) -> None:
        """Show the rows of ``scan``."""
        super().__init__(graph, fold, scan)
        self._held = scan
        self._logs = TimedStepLogs(scan, self._of_key)
        self._timed = scan.timed
        self._fired: dict[int, tuple[int, Fired, int]] = {}
        self._place_of: dict[int, int] = {}
        self._before: dict[int, tuple[Fired, ...]] = {}
        self._runs: dict[int, Run] = {}
        self._with_rows: set[int] = set()
        self._fresh: set[int] = set()
        self._due: list[tuple[int, int]] = []
        self._ends: list[tuple[int, int]] = []
        self._gone: list[int] = []
        self._of_timers: set[int] = set()
        self._final_ns = watermark.NONE

    def settle(self, watermark_ns: int) -> None:
        """Take new rows, rerun their keys from there, call due timers, and show the changes."""
        news = self._scan.take_news()
        self._change([] if news is None else [news], watermark_ns)
        over, empty = self._logs.end()
        self._final_ns = self._scan.watermark_ns
        fired = self._end_fired()
        self._over = np.concatenate([self._over, over, np.array(fired, np.int64)])
        self._with_rows.difference_update(empty.tolist())
        self._fresh.update(empty.tolist())
        self._drop(watermark_ns)

    def _change(self, news: Iterable[pa.RecordBatch], watermark_ns: int) -> None:
        """Take new rows, call due timers, and replace rows of timers by the rows after that."""
        was: set[int] = set()
        now: dict[int, tuple[Fired, int]] = {}
        shown = [self._ran(rows, was, now) for rows in news]
        self._call(watermark_ns, now)
        gone = [self._fired.pop(place)[0] for place in sorted(was - now.keys())]
        for slot in gone:
            del self._place_of[slot]
        self._gone += gone
        shown.append(np.array(gone, np.int64))
        if now:
            places = sorted(now)
            slots = self.keys.slots(self._origins_at(0, np.array(places, np.int64), None))
            self.keys.adopt(slots)
            for slot, place in zip(slots.tolist(), places, strict=True):
                fired, key = now[place]
                self._fired[place], self._place_of[slot] = (slot, fired, key), place
                heappush(self._ends, (fired.time_ns, place))
            shown.append(slots)
        changed = np.unique(np.concatenate(shown))
        if len(changed):
            self._show(changed)

    def _ran(self, rows: pa.RecordBatch, was: set[int], now: dict[int, tuple[Fired, int]]) -> Ints:
        """Take new rows; return the rows that ran, and note rows of timers before and after."""
        slots = self.keys.slots(self._origins(0, rows))
        self.keys.adopt(slots)
        of_key = self._of_key.slots([rows.column(name) for name in self._names])
        self._of_key.adopt(of_key)
        ran = self._logs.take(rows, of_key, slots)
        keys = np.unique(of_key)
        for key in keys.tolist():
            if key in self._runs:
                was.update(one.place for one in self._open(self._runs[key].made))
        for number in ran.tolist():
            was.update(one.place for one in self._open(self._before.pop(number, ())))
        for number in ran.tolist():
            run = self._logs.result_of(number)
            made = () if run is None else self._open(run.made)
            if made:
                self._before[number] = made
                key = self._logs.slot_of(number)
                now.update((one.place, (one, key)) for one in made)
        for key, (run,) in zip(keys.tolist(), self._logs.states_of(keys), strict=True):
            self._runs[key] = run._replace(made=())
        self._with_rows.update(keys.tolist())
        self._fresh.update(keys.tolist())
        return ran

    def _open(self, made: tuple[Fired, ...]) -> tuple[Fired, ...]:
        """Return the rows of timers that are not final."""
        return tuple(one for one in made if one.time_ns >= self._final_ns)

    def _call(self, watermark_ns: int, now: dict[int, tuple[Fired, int]]) -> None:
        """Call the timers that are due by a watermark."""
        if watermark_ns == watermark.NONE:
            return
        has_ended = watermark_ns == watermark.END
        while self._due and (has_ended or self._due[0][0] <= watermark_ns):
            key = heappop(self._due)[1]
            if key in self._runs:
                self._fresh.add(key)
        open_ns = self._held.reached_ns if has_ended else watermark_ns
        for key in sorted(self._fresh):
            before = self._runs[key]
            after = before if open_ns == watermark.NONE else self._timed.until(before, open_ns)
            made = (*before.made, *after.made)
            if has_ended:
                after = self._timed.ended(after)
                made += after.made
            made = self._open(made)
            now.update((one.place, (one, key)) for one in made)
            self._runs[key] = after._replace(made=made)
            due_ns = None if has_ended else self._timed.next_ns(after)
            if due_ns is not None:
                heappush(self._due, (due_ns, key))

    def _end_fired(self) -> list[int]:
        """Return the slots of rows of timers that became final."""
        over = []
        while self._ends and (self._final_ns == watermark.END or self._ends[0][0] < self._final_ns):
            time_ns, place = heappop(self._ends)
            slot, fired, key = self._fired.get(place, (0, None, 0))
            if fired is not None and fired.time_ns == time_ns:
                del self._fired[place], self._place_of[slot]
                over.append(slot)
                self._fresh.add(key)
        self._of_timers.update(over)
        return over

    def _drop(self, watermark_ns: int) -> None:
        """Forget keys without open rows and timers."""
        looked, self._fresh = self._fresh, set()
        if watermark_ns == watermark.NONE:
            self._fresh = looked
        drop = []
        for key in sorted(looked):
            run = self._runs[key]._replace(made=self._open(self._runs[key].made))
            self._runs[key] = run
            if key not in self._with_rows and not run.made and self._timed.next_ns(run) is None:
                drop.append(key)
                del self._runs[key]
        self._of_key.release(np.array(drop, np.int64))

    def results(self, slots: Ints) -> tuple[Ints, dict[str, Any], dict[int, str]]:
        """Return (slots of rows, their fields by name, reasons of failed rows by slot)."""
        kept, keys, made = [], [], []
        failed: dict[int, str] = {}
        for slot in slots.tolist():
            result, key = self._result_of(slot)
            if isinstance(result, str):
                failed[slot] = result
            elif result is not None:
                kept.append(slot)
                keys.append(key)
                made.append(result)
        rows = Rows(key_columns(self._of_key, np.array(keys, np.int64)), len(made))
        self._scan.step.make(rows, made)
        shown = {field.name: rows.columns[field.name] for field in self._node.fields_out}
        return np.array(kept, np.int64), shown, failed

    def _result_of(self, slot: int) -> tuple[Any, int]:
        """Return the result of a row, or the reason of its failure, and the slot of its key."""
        place = self._place_of.get(slot)
        if place is not None:
            _, fired, key = self._fired[place]
            return fired.result, key
        if not self._logs.has(slot):  # a row of a timer that is gone
            return None, 0
        run = self._logs.result_of(slot)
        return None if run is None else run.result, self._logs.slot_of(slot)

    def free(self, expired: Ints) -> None:
        """Free these slots, and the slots of retracted rows."""
        if self._gone:
            gone = np.array(self._gone, np.int64)
            self._gone.clear()
            self.column.retire(gone)
            self.keys.release(gone)
        if len(expired):
            self._release(expired)
            of_rows = [slot for slot in expired.tolist() if slot not in self._of_timers]
            self._of_timers.clear()
            for slot in of_rows:
                self._before.pop(slot, None)
            self._logs.forget(np.array(of_rows, np.int64))

    @property
    def nbytes(self) -> int:
        """Bytes held, about 500 of them by row of a timer and 300 by key."""
        return super().nbytes + 500 * len(self._fired) + 300 * len(self._runs)

    def load(self, table: pa.Table, watermark_ns: int) -> None:
        """Show the held rows of the loaded scan, and its timers' rows up to the watermark.

        Final rows of timers are not shown again.
        """
        del table
        self._final_ns = self._scan.watermark_ns
        keys, runs = self._held.pending()
        slots = self._of_key.slots(keys)
        self._of_key.adopt(slots)
        self._runs |= zip(slots.tolist(), runs, strict=True)
        self._fresh.update(slots.tolist())
        self._change(self._scan.held_rows(), watermark_ns)
        self._drop(watermark_ns)

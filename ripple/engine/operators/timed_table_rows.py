"""The held rows of a scan with timers for a table, and the last row of each key, at once."""

from __future__ import annotations

from functools import partial
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.engine.kernels.step_entry import Logs, take_after
from ripple.engine.operators.held_rows import PLACE
from ripple.engine.operators.last_table_rows import LastTableRows
from ripple.engine.operators.rows import refusal_of
from ripple.engine.operators.step_logs import StepLogs, versions
from ripple.engine.operators.step_scan_rows import StepScanRows
from ripple.engine.operators.timed_step import Run, TimedStep
from ripple.engine.operators.uncomputable import Failure, UncomputableRow
from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from ripple.engine.graph.node import Graph
    from ripple.engine.operators.feeds import Feeds
    from ripple.engine.operators.rows import Rows
    from ripple.engine.operators.waiting import ByInput
    from ripple.model.keys.space import KeySpace
    from ripple.model.pipeline.nodes import LastTable
    from ripple.model.pipeline.waiting_nodes import StepScan

    Ints = npt.NDArray[np.int64]


class TimedTableScanRows(StepScanRows):
    """Holds rows until they are final; a table has called the function and the timers.

    A key has the state after its last final row: the table calls timers behind it again, until a
    row behind them is final, or the inputs have ended. Then a failed timer without a row in the
    table is counted. Invariant: ``_states`` has a ``Run`` of each slot as the only value of its
    state.
    """

    def __init__(self, node: StepScan, feeds: Feeds, by_input: ByInput) -> None:
        """Make an empty node; see HeldByKey."""
        super().__init__(node, feeds, by_input)
        self.timed = TimedStep(node, self.step, self.initial)
        self.initial = (self.timed.begin,)

    def _take_reached(self, rows: Rows, slots: Ints) -> None:
        entries, self._reached = self._reached[: rows.count], self._reached[rows.count :]
        if not self.node.is_last:
            take_after(self._states, None, slots, entries)
            return
        take_after(self._states, self._lasts, slots, entries)
        runs: list[Any] = [entry.result for entry in entries]
        failed = [(at, run.failed) for at, run in enumerate(runs) if run is not None and run.failed]
        if failed:
            fields = [rows.columns.arrow(name).to_pylist() for name in self._names]
            for at, calls in failed:
                self._count(tuple(field[at] for field in fields), calls)

    def _made_by(self, mark_ns: int) -> None:
        if mark_ns != watermark.END:
            return
        slots = self._keys.index.live_slots()
        slots = slots[~self._is_over(slots, mark_ns)]
        reached_ns = self.reached_ns
        keys = zip(*(array.to_pylist() for array in self._keys.arrays(slots)), strict=True)
        for slot, key in zip(slots.tolist(), keys, strict=True):
            (before,) = self._states[slot]
            behind = self.timed.until(before, reached_ns)
            run = self.timed.ended(behind)
            self._count(key, behind.failed)
            self._states[slot], self._lasts[slot] = (run,), run
            self._count(key, run.failed)

    def _count(self, key: tuple[Any, ...], failed: Iterable[tuple[int, str]]) -> None:
        """Count calls that failed."""
        name = self.node.name
        self.lost.lose(
            UncomputableRow((*key, time_ns), *Failure.of(name, why)) for time_ns, why in failed
        )

    def _state_columns(self, slots: Ints) -> tuple[list[pa.Field], list[pa.Array]]:
        runs = self._states
        lasts: list[Any] = self._lasts
        self._states = [run.state for (run,) in runs]
        self._lasts = [None if run is None else run.last for run in lasts]
        found = super()._state_columns(slots)
        self._states, self._lasts = runs, lasts
        if self.node.is_last:
            return found
        fields, arrays = found
        places = [run.place for (run,) in (runs[slot] for slot in slots.tolist())]
        return [*fields, pa.field(PLACE, pa.int64())], [*arrays, pa.array(places, pa.int64())]

    def _load_states(self, slots: Ints, columns: Sequence[pa.ChunkedArray]) -> None:
        places = [0] * len(slots)
        if not self.node.is_last:
            *columns, last = columns
            places = last.to_pylist()
        super()._load_states(slots, columns)
        for slot, place in zip(slots.tolist(), places, strict=True):
            at = int(self._last[slot])
            run = Run(self._states[slot], at, at, 0, self._lasts[slot], place=place)
            self._states[slot], self._lasts[slot] = (run,), run

    def pending(self) -> tuple[list[pa.Array], list[Run]]:
        """Return the keys with a timer that is set, each in the state after its last final row."""
        slots = self._deciding()
        is_due = [self.timed.next_ns(self._states[slot][0]) is not None for slot in slots.tolist()]
        slots = slots[np.array(is_due, np.bool_)]
        return self._keys.arrays(slots), [self._states[slot][0] for slot in slots.tolist()]


class TimedStepLogs(StepLogs):
    """Runs a key again from each new row on, with the timers before each row."""

    def __init__(self, scan: TimedTableScanRows, keys: KeySpace) -> None:
        """Have no rows of ``scan`` yet; see StepLogs."""
        super().__init__(scan, keys)
        of = None if scan.node.version_of is None else _versions
        # The step of a row knows the time of the one before, and so whether the state has ended.
        self._logs = Logs(
            scan.timed.called, scan.initial, None, of, partial(refusal_of, self._node.name)
        )

    def _given(self, columns: dict[str, Any], times: Ints, places: Ints) -> list[Any]:
        given = super()._given(columns, times, places)
        return list(zip(given, times.tolist(), places.tolist(), strict=True))


def _versions(rows: Sequence[Any], times: Sequence[int], of: Sequence[Any]) -> Sequence[Any]:
    """Return the newest versions of a key's rows, each with its own time and place."""
    found = versions([row[0] for row in rows], times, of)
    each = zip(found, rows, strict=True)
    return [None if values is None else (values, *row[1:]) for values, row in each]


class TimedLastTableRows(LastTableRows):
    """Shows of each key the newest row that the step or a timer made.

    Timers are called that are due by the watermark. Invariants between stabilizations: ``_runs``
    has per slot of a key its state after them, ``_at`` when each with a timer is looked at, no
    later than that is due, and ``_due`` these, and at most as many other times.
    """

    def __init__(self, graph: Graph, fold: LastTable, scan: TimedTableScanRows) -> None:
        """Show the last rows of ``scan``."""
        super().__init__(graph, fold, scan)
        self._logs = TimedStepLogs(scan, self.keys)
        self._timed = scan.timed
        self._runs: dict[int, Run] = {}
        self._fresh: set[int] = set()
        self._at: dict[int, int] = {}
        self._due: list[tuple[int, int]] = []

    def settle(self, watermark_ns: int) -> None:
        """Take the new rows, run their keys again from there, and call timers."""
        super().settle(watermark_ns)
        for slot in self._gone:
            self._runs.pop(slot, None)
            self._at.pop(slot, None)
        self._call(watermark_ns)

    def _note(self, slots: Ints, lasts: Sequence[Any], last_ns: Ints) -> None:
        self._runs |= zip(slots.tolist(), lasts, strict=True)
        self._fresh.update(slots.tolist())
        super()._note(slots, [run.last for run in lasts], last_ns)

    def _call(self, watermark_ns: int) -> None:
        """Call the timers that are due by a watermark, and show their keys."""
        slots, self._fresh = self._fresh, set()
        if watermark_ns == watermark.NONE:
            self._fresh = slots
            return
        has_ended = watermark_ns == watermark.END
        while self._due and (has_ended or self._due[0][0] <= watermark_ns):
            due_ns, slot = heappop(self._due)
            if self._at.get(slot) == due_ns:
                del self._at[slot]
                slots.add(slot)
        until_ns = self._scan.reached_ns if has_ended else watermark_ns
        changed = []
        for slot in sorted(slots):
            if self._last_ns[slot] == watermark.NONE:  # its state has ended
                continue
            before, last = self._runs[slot], self._lasts[slot]
            after = self._timed.until(before, until_ns)
            after = self._timed.ended(after) if has_ended else after
            self._runs[slot], self._lasts[slot] = after, after.last
            if after.last is not last:
                changed.append(slot)
            if not has_ended:
                self._arm(slot, self._timed.next_ns(after))
        if changed:
            self._show(np.array(changed, np.int64))

    def _arm(self, slot: int, due_ns: int | None) -> None:
        """Have a key looked at when its next timer is due."""
        if due_ns is None or self._at.get(slot, due_ns + 1) <= due_ns:
            return
        self._at[slot] = due_ns
        heappush(self._due, (due_ns, slot))
        if len(self._due) > 2 * len(self._at):  # of keys that are looked at earlier now
            self._due = [(at_ns, one) for one, at_ns in self._at.items()]
            heapify(self._due)

    @property
    def nbytes(self) -> int:
        """Bytes held, about 300 more of them by key and 120 by time in ``_due``."""
        return super().nbytes + 300 * len(self._runs) + 120 * len(self._due)

    def load(self, table: pa.Table, watermark_ns: int) -> None:
        """Show the last rows of the scan and of its held rows, with timers up to that watermark."""
        super().load(table, watermark_ns)
        self._call(watermark_ns)

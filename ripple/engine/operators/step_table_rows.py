"""The rows of a scan from their reading on, corrected when an earlier row of their key comes."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from ripple.engine.kernels.row_order import RowOrder
from ripple.engine.operators.held_rows import PLACE, TIME
from ripple.engine.operators.joins.eager_rows import EagerRows
from ripple.engine.operators.rows import Rows, as_list, reason_of
from ripple.engine.operators.state_step import StateStep
from ripple.model.schema.logical.values import values_of
from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from ripple.engine.graph.node import Graph
    from ripple.engine.operators.state_step import Stored
    from ripple.engine.operators.step_scan_rows import StepScanRows
    from ripple.model.pipeline.nodes import RowTable

    Ints = npt.NDArray[np.int64]

_NONE = np.empty(0, np.int64)


class _Entry:
    """A row of a log: its slot, its values, and the state of its key after it."""

    __slots__ = ("after", "row", "slot")

    def __init__(self, slot: int, row: Stored) -> None:
        self.slot, self.row = slot, row
        self.after: Stored = ()


class _Log:
    """The rows of a key that are not final, in their order.

    state: of the key before them; last_ns: the time of the row before them, None without one.
    marks: per row its time and place.
    """

    __slots__ = ("entries", "last_ns", "marks", "state")

    def __init__(self, state: Stored, last_ns: int | None) -> None:
        self.state, self.last_ns = state, last_ns
        self.marks: list[tuple[int, int]] = []
        self.entries: list[_Entry] = []

    def add(self, mark: tuple[int, int], entry: _Entry) -> None:
        """Take a row where it belongs."""
        at = len(self.marks)
        if self.marks and mark < self.marks[-1]:
            at = bisect_left(self.marks, mark)
        self.marks.insert(at, mark)
        self.entries.insert(at, entry)

    def before(self, at: int) -> tuple[Stored, int | None]:
        """Return the state before a row, and the time of the row before it."""
        if not at:
            return self.state, self.last_ns
        return self.entries[at - 1].after, self.marks[at - 1][0]

    def drop(self, count: int) -> None:
        """Forget the first, final rows."""
        self.state, self.last_ns = self.before(count)
        del self.marks[:count], self.entries[:count]


class _Made(NamedTuple):
    """A row's key and result: the values of ``into``, None for no row, or why the step failed."""

    key: tuple[Any, ...]
    result: Stored | str | None


class StepTableRows(EagerRows):
    """The rows of a scan until they are final, each after all rows of its key before it so far.

    A new row runs its key again from where it belongs. Invariants between stabilizations:
    ``_logs`` has per key with rows that are not final these rows, with the states after them;
    ``_made`` has per slot of such a row its result, and ``_ends`` the slots by their times.
    """

    def __init__(self, graph: Graph, fold: RowTable, scan: StepScanRows) -> None:
        """Show the rows of ``scan``."""
        super().__init__(graph, fold, scan)
        self._scan, self._node = scan, scan.node
        self._step = StateStep(scan.node).call
        self._names = [field.name for field in scan.node.key]
        self._logs: dict[tuple[Any, ...], _Log] = {}
        self._made: dict[int, _Made] = {}
        self._ends = RowOrder()

    def settle(self, watermark_ns: int) -> None:
        """Take the new rows, run their keys again from there, and show the changes."""
        del watermark_ns
        news = self._scan.take_news()
        if news is not None:
            self._take(news)
        self._end()

    # --- rows that come ---

    def _take(self, rows: pa.RecordBatch) -> None:
        """Take new rows."""
        slots = self.keys.slots(self._origins(0, rows))
        self.keys.adopt(slots)
        times, places = np.asarray(rows.column(TIME)), np.asarray(rows.column(PLACE))
        self._ends.add(np.zeros_like(slots), times, places, slots)
        keys = list(zip(*(rows.column(name).to_pylist() for name in self._names), strict=True))
        self._begin(rows, keys)
        fields = self._node.fields_in
        columns = (values_of(as_list(rows.column(one.name)), one.type) for one in fields)
        first: dict[tuple[Any, ...], tuple[int, int]] = {}
        marks = zip(times.tolist(), places.tolist(), strict=True)
        each = zip(keys, marks, slots.tolist(), zip(*columns, strict=True), strict=True)
        for key, mark, slot, row in each:
            self._logs[key].add(mark, _Entry(slot, row))
            first[key] = min(first.get(key, mark), mark)
            self._made[slot] = _Made(key, None)
        touched = [slot for key, mark in first.items() for slot in self._run(key, mark)]
        self._show(np.unique(np.array(touched, np.int64)))

    def _begin(self, rows: pa.RecordBatch, keys: list[tuple[Any, ...]]) -> None:
        """Make a log for each key that has none."""
        new = {key: at for at, key in enumerate(keys) if key not in self._logs}
        if not new:
            return
        at = pa.array(new.values())
        states = self._scan.states_of([rows.column(name).take(at) for name in self._names])
        for key, (state, last_ns) in zip(new, states, strict=True):
            self._logs[key] = _Log(state, last_ns)

    def _run(self, key: tuple[Any, ...], mark: tuple[int, int]) -> Iterable[int]:
        """Run a key again from a row on; yield the slots of the rows."""
        log, ttl_ns, initial = self._logs[key], self._node.ttl_ns, self._scan.initial
        start = bisect_left(log.marks, mark)
        state, last_ns = log.before(start)
        for entry, (time_ns, _) in zip(log.entries[start:], log.marks[start:], strict=True):
            if ttl_ns is not None and last_ns is not None and time_ns - last_ns >= ttl_ns:
                state = initial
            result: Stored | str | None
            try:
                state, result = self._step(state, entry.row)
            except Exception as error:  # any error of a user's function
                result = reason_of(error)
            entry.after, last_ns = state, time_ns
            self._made[entry.slot] = _Made(key, result)
            yield entry.slot

    def results(self, slots: Ints) -> tuple[Ints, dict[str, Any], dict[int, str]]:
        """Return (slots of rows, their fields by name, why a row failed by slot)."""
        kept, keys, made, failed = [], [], [], {}
        for slot in slots.tolist():
            key, result = self._made[slot]
            if isinstance(result, str):
                failed[slot] = result
            elif result is not None:
                kept.append(slot)
                keys.append(key)
                made.append(result)
        of_key = {
            name: pa.array([key[at] for key in keys], kind)
            for at, (name, kind) in enumerate(self._scan.key_types.items())
        }
        rows = Rows(of_key, len(kept))
        rows.take_made(self._node, made)
        shown = {field.name: rows.columns[field.name] for field in self._node.fields_out}
        return np.array(kept, np.int64), shown, failed

    # --- rows that leave ---

    def _end(self) -> None:
        """Give the scan the states after the rows that it is about to take: these stay."""
        if self._scan.watermark_ns == watermark.END:
            over, self._ends = self._ends.rows()[2], RowOrder()
        else:
            over = self._ends.take_below(self._scan.watermark_ns)
        if not len(over):
            return
        counts: dict[tuple[Any, ...], int] = {}
        states: list[Stored] = []
        for slot in over.tolist():
            key = self._made[slot].key
            count = counts[key] = counts.get(key, 0) + 1
            states.append(self._logs[key].entries[count - 1].after)
        self._scan.reach(states)
        for key, count in counts.items():
            log = self._logs[key]
            log.drop(count)
            if not log.marks:
                del self._logs[key]
        self._over = np.concatenate([self._over, over])

    def free(self, expired: Ints) -> None:
        """Free these slots."""
        if not len(expired):
            return
        self.uncomputable.finalize(expired)
        self.column.retire(expired)
        for slot in expired.tolist():
            del self._made[slot]
        self.keys.release(expired)

    @property
    def nbytes(self) -> int:
        """Bytes held, about 400 of them by row."""
        held = 400 + 16 * len(self._node.fields_in)
        own = self._ends.nbytes + self.keys.index.nbytes + self.column.nbytes
        return own + held * len(self._made)

    # --- snapshots: of the scan alone ---

    def load(self, table: pa.Table, watermark_ns: int) -> None:
        """Show the rows that the scan holds, which was loaded before."""
        del table, watermark_ns
        for rows in self._scan.held_rows():
            self._take(rows)

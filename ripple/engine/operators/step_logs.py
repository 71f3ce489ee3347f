"""The rows of a scan until they are final, by key, with the state after each."""

from __future__ import annotations

from bisect import bisect_left
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.engine.kernels.row_order import RowOrder
from ripple.engine.kernels.step_entry import Entry
from ripple.engine.operators.held_rows import PLACE, TIME
from ripple.engine.operators.key_log import KeyLog, drop_final, take_final
from ripple.engine.operators.rows import as_list, reason_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ripple.engine.operators.key_log import Key, Mark
    from ripple.engine.operators.state_step import Stored
    from ripple.engine.operators.step_scan_rows import StepScanRows

    Ints = npt.NDArray[np.int64]

_FIRST = -(1 << 63)  # a place before all others


class _Log(KeyLog[Entry]):
    """state, last, last_ns: of the key before its rows here; None without one.

    Its state, its newest result, and the time of its last row.
    """

    __slots__ = ("last", "last_ns", "state")

    def __init__(self, state: Stored, last: Stored | None, last_ns: int | None) -> None:
        super().__init__()
        self.state, self.last, self.last_ns = state, last, last_ns

    def before(self, at: int) -> tuple[Stored, Stored | None, int | None]:
        """Return the state, the newest result and the time of the last row, before a row."""
        if not at:
            return self.state, self.last, self.last_ns
        entry = self.entries[at - 1]
        return entry.after, entry.last, self.marks[at - 1][0]

    def drop(self, count: int) -> None:
        """Forget the first, final rows."""
        self.state, self.last, self.last_ns = self.before(count)
        super().drop(count)


def versions(
    rows: Sequence[Stored], times: Sequence[int], of: Sequence[Any]
) -> Sequence[Stored | None]:
    """Return the rows of a key as they count: the newest version in the place of the first.

    None for a replaced version. of: the value that versions share; None for none.
    """
    pairs = enumerate(zip(times, of, strict=True))
    newest = {pair: at for at, pair in pairs if pair[1] is not None}
    if not newest:
        return rows
    found: list[Stored | None] = []
    for row, time_ns, version in zip(rows, times, of, strict=True):
        at = None if version is None else newest.pop((time_ns, version), -1)
        found.append(row if at is None else None if at < 0 else rows[at])
    return found


class StepLogs:
    """Runs a key again from each new row on.

    Invariants between calls: ``_logs`` has per key with rows that are not final these rows, with
    the states after them; ``entries`` has them by number, and ``_ends`` the numbers by their times.
    """

    def __init__(self, scan: StepScanRows) -> None:
        """Have no rows of ``scan`` yet."""
        self._scan, self._node = scan, scan.node
        self._step = scan.step
        self._call = self._step.call
        self._names = [field.name for field in scan.node.key]
        self._logs: dict[Key, _Log] = {}
        self.entries: dict[int, Entry] = {}
        self._ends = RowOrder()

    def take(self, rows: pa.RecordBatch, numbers: Ints) -> list[Entry]:
        """Take new rows; return them and those behind them, run again."""
        times, places = np.asarray(rows.column(TIME)), np.asarray(rows.column(PLACE))
        self._ends.add(np.zeros_like(numbers), times, places, numbers)
        keys = list(zip(*(rows.column(name).to_pylist() for name in self._names), strict=True))
        self._begin(rows, keys)
        columns = dict(zip(rows.schema.names, rows.columns, strict=True))
        first: dict[Key, Mark] = {}
        marks = zip(times.tolist(), places.tolist(), strict=True)
        version_of = self._node.version_of
        of = repeat(None) if version_of is None else as_list(columns[version_of.name])
        given = self._step.given(columns)
        each = zip(keys, marks, numbers.tolist(), given, of, strict=version_of is not None)
        for key, mark, number, row, version in each:
            entry = self.entries[number] = Entry(number, key, row, version)
            self._logs[key].add(mark, entry)
            since = mark if version is None else (mark[0], _FIRST)
            first[key] = min(first.get(key, since), since)
        return [entry for key, mark in first.items() for entry in self._run(key, mark)]

    def _begin(self, rows: pa.RecordBatch, keys: list[Key]) -> None:
        """Make a log for each key that has none."""
        new = {key: at for at, key in enumerate(keys) if key not in self._logs}
        if not new:
            return
        at = pa.array(new.values())
        states = self._scan.states_of([rows.column(name).take(at) for name in self._names])
        for key, state in zip(new, states, strict=True):
            self._logs[key] = _Log(*state)

    def _run(self, key: Key, mark: Mark) -> list[Entry]:
        """Run a key again from a row on; return its rows from there."""
        log, ttl_ns, initial = self._logs[key], self._node.ttl_ns, self._scan.initial
        start = bisect_left(log.marks, mark)
        state, last, last_ns = log.before(start)
        entries, times = log.entries[start:], [time_ns for time_ns, _ in log.marks[start:]]
        rows = versions([entry.row for entry in entries], times, [entry.of for entry in entries])
        for entry, row, time_ns in zip(entries, rows, times, strict=True):
            if ttl_ns is not None and last_ns is not None and time_ns - last_ns >= ttl_ns:
                state, last = initial, None
            try:
                state, result = (state, None) if row is None else self._call(state, row)
            except Exception as error:  # any error of a user's function
                entry.result = reason_of(error)
            else:
                entry.result = result
                last = last if result is None else result
            entry.after, entry.last, last_ns = state, last, time_ns
        return entries

    def last_of(self, key: Key) -> tuple[Stored | None, int]:
        """Return the newest result of a key with rows here, and the time of its last row."""
        log = self._logs[key]
        return log.entries[-1].last, log.marks[-1][0]

    def end(self) -> list[Entry]:
        """Give the scan the rows that it is about to take, and forget them; return them."""
        over, self._ends = take_final(self._ends, self._scan.watermark_ns)
        ended = [self.entries[number] for number in over.tolist()]
        if ended:
            self._scan.reach(ended)
            drop_final(self._logs, (entry.key for entry in ended))
        return ended

    def forget(self, numbers: Ints) -> None:
        """Forget rows that ended."""
        for number in numbers.tolist():
            del self.entries[number]

    @property
    def nbytes(self) -> int:
        """Bytes held, about 400 of them by row."""
        return self._ends.nbytes + (400 + 16 * len(self._node.fields_in)) * len(self.entries)

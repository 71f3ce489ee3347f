"""The rows of a scan until they are final, by key, with the state after each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from ripple.engine.kernels.row_order import RowOrder
from ripple.engine.kernels.step_entry import Logs
from ripple.engine.operators.held_rows import PLACE, TIME
from ripple.engine.operators.joins.eager_rows import take_final
from ripple.engine.operators.rows import as_list, reason_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt

    from ripple.engine.kernels.step_entry import Entry
    from ripple.engine.operators.state_step import Stored
    from ripple.engine.operators.step_scan_rows import StepScanRows

    Ints = npt.NDArray[np.int64]

Key: TypeAlias = tuple[Any, ...]


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

    Invariant between calls: ``_logs`` has the rows that are not final with the states after them,
    and ``_ends`` their numbers by their times.
    """

    def __init__(self, scan: StepScanRows) -> None:
        """Have no rows of ``scan`` yet."""
        self._scan, self._node = scan, scan.node
        of = None if scan.node.version_of is None else versions
        self._logs = Logs(scan.step.call, scan.initial, scan.node.ttl_ns, of, reason_of)
        self._names = [field.name for field in scan.node.key]
        self._ends = RowOrder()

    @property
    def entries(self) -> Mapping[int, Entry]:
        """The rows by number, also those that ended, until they are forgotten."""
        return self._logs.entries

    def take(self, rows: pa.RecordBatch, numbers: Ints) -> list[Entry]:
        """Take new rows; return them and those behind them, run again."""
        times, places = np.asarray(rows.column(TIME)), np.asarray(rows.column(PLACE))
        self._ends.add(np.zeros_like(numbers), times, places, numbers)
        keys, which = self._keys(rows)
        if new := self._logs.unknown(keys):
            firsts = pa.array(np.unique(which, return_index=True)[1][new])
            states = self._scan.states_of([rows.column(name).take(firsts) for name in self._names])
            for at, state in zip(new, states, strict=True):
                self._logs.begin(keys[at], *state)
        columns = dict(zip(rows.schema.names, rows.columns, strict=True))
        version_of = self._node.version_of
        of = None if version_of is None else as_list(columns[version_of.name])
        given = self._scan.step.given(columns)
        return self._logs.take(keys, which, times, places, numbers.tolist(), given, of)

    def _keys(self, rows: pa.RecordBatch) -> tuple[list[Key], Ints]:
        """Return the distinct keys of rows, by their first rows, and each row's key by index."""
        if len(self._names) == 1:
            found = rows.column(self._names[0]).dictionary_encode()
            values = found.dictionary.to_pylist()
            which = found.indices.to_numpy(zero_copy_only=False).astype(np.int64)
            return [(value,) for value in values], which
        each = zip(*(rows.column(name).to_pylist() for name in self._names), strict=True)
        places: dict[Key, int] = {}
        which = np.array([places.setdefault(key, len(places)) for key in each], np.int64)
        return list(places), which

    def last_of(self, key: Key) -> tuple[Stored | None, int]:
        """Return the newest result of a key with rows here, and the time of its last row."""
        return self._logs.last_of(key)

    def end(self) -> list[Entry]:
        """Give the scan the rows that it is about to take, and forget them; return them."""
        over, self._ends = take_final(self._ends, self._scan.watermark_ns)
        ended = self._logs.end(over.tolist())
        if ended:
            self._scan.reach(ended)
        return ended

    def forget(self, numbers: list[int]) -> None:
        """Forget rows that ended."""
        self._logs.forget(numbers)

    @property
    def nbytes(self) -> int:
        """Bytes held, about 400 of them by row."""
        return self._ends.nbytes + (400 + 16 * len(self._node.fields_in)) * len(self.entries)

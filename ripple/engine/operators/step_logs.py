"""The rows of a scan until they are final, by key, with the state after each."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.engine.kernels.row_order import RowOrder
from ripple.engine.kernels.step_entry import Logs, made_of
from ripple.engine.operators.held_rows import PLACE, TIME
from ripple.engine.operators.joins.eager_rows import take_final
from ripple.engine.operators.rows import as_list, refusal_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ripple.engine.operators.state_step import Stored
    from ripple.engine.operators.step_scan_rows import StepScanRows
    from ripple.model.keys.space import KeySpace

    Ints = npt.NDArray[np.int64]


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

    def __init__(self, scan: StepScanRows, keys: KeySpace) -> None:
        """Have no rows of ``scan`` yet; keys: has its keys, with the slots that ``take`` gets."""
        self._scan, self._node, self._keys = scan, scan.node, keys
        of = None if scan.node.version_of is None else versions
        self._logs = Logs(
            scan.step.call, scan.initial, scan.node.ttl_ns, of, partial(refusal_of, self._node.name)
        )
        self._names = [field.name for field in scan.node.key]
        self._ends = RowOrder()

    def take(self, rows: pa.RecordBatch, slots: Ints, numbers: Ints) -> Ints:
        """Take new rows; return the numbers of them and of those behind them, run again."""
        times, places = np.asarray(rows.column(TIME)), np.asarray(rows.column(PLACE))
        self._ends.add(np.zeros_like(numbers), times, places, numbers)
        self._logs.grow(self._keys.capacity)
        new = self._logs.begin(slots)
        if len(new):
            found = [rows.column(name).take(pa.array(new)) for name in self._names]
            self._logs.set(slots[new], *self._scan.states_of(found))
        columns = dict(zip(rows.schema.names, rows.columns, strict=True))
        version_of = self._node.version_of
        of = None if version_of is None else as_list(columns[version_of.name])
        given = self._given(columns, times, places)
        order = np.lexsort((places, times))
        return self._logs.take(order, slots, times, places, numbers, given, of)

    def _given(self, columns: dict[str, Any], times: Ints, places: Ints) -> Sequence[Any]:
        """Return the values of rows, as the logs give them to the step."""
        del times, places
        return self._scan.step.given(columns)

    def last_of(self, slots: Ints) -> tuple[list[Stored | None], Ints]:
        """Return the newest results of keys with rows here, and the times of their last rows."""
        return self._logs.last_of(slots)

    def states_of(self, slots: Ints) -> list[Stored]:
        """Return the states of keys with rows here, after their last rows."""
        return self._logs.states_of(slots)

    def has(self, number: int) -> bool:
        """Return whether there is such a row."""
        return number in self._logs.entries

    def result_of(self, number: int) -> Any:
        """Return the result of a row, None for no row."""
        return self._logs.entries[number].result

    def slot_of(self, number: int) -> int:
        """Return the slot of a row's key."""
        return self._logs.entries[number].slot

    def made_of(self, numbers: Ints) -> tuple[Ints, Ints, list[Stored], dict[int, str]]:
        """Return (rows with a result, the slots of their keys, the results, why others failed)."""
        return made_of(self._logs.entries, numbers)

    def end(self) -> tuple[Ints, Ints]:
        """Pass final rows to the scan; return them, and keys without rows for some calls."""
        over, self._ends = take_final(self._ends, self._scan.watermark_ns)
        ended, empty = self._logs.end(over)
        if ended:
            self._scan.reach(ended)
        return over, empty

    def leave(self, slots: Ints) -> None:
        """Forget keys without rows."""
        self._logs.grow(self._keys.capacity)
        self._logs.leave(slots)

    def forget(self, numbers: Ints) -> None:
        """Forget rows that ended."""
        self._logs.forget(numbers)

    @property
    def nbytes(self) -> int:
        """Bytes held, about 400 of them by row."""
        return self._ends.nbytes + (400 + 16 * len(self._node.fields_in)) * len(self._logs.entries)

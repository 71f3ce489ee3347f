"""The last row of each key of a scan, from its reading on."""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.engine.operators.joins.eager_rows import EagerRows
from ripple.engine.operators.rows import Rows, made_by
from ripple.engine.operators.step_logs import StepLogs
from ripple.engine.snapshots.slot_arrays import grown
from ripple.model.keys.space import key_columns
from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ripple.engine.graph.node import Graph
    from ripple.engine.operators.state_step import Stored
    from ripple.engine.operators.step_scan_rows import StepScanRows
    from ripple.model.pipeline.nodes import LastTable

    Ints = npt.NDArray[np.int64]


class LastTableRows(EagerRows):
    """Shows of each key the newest row that the step made, after all of its rows so far.

    A row that no step can make is no row here: once it is final, the scan counts it. Invariants:
    ``_lasts`` has per slot of a key the newest result, None if there is none yet, and ``_last_ns``
    the time of its last row. With a ttl, ``_ends`` has each slot once, at a time up to that one.
    """

    def __init__(self, graph: Graph, fold: LastTable, scan: StepScanRows) -> None:
        """Show the last rows of ``scan``."""
        super().__init__(graph, fold, scan)
        self._scan, self._node = scan, scan.node
        self._names = [field.name for field in scan.node.key]
        self._made = made_by(scan.node)
        self._logs = StepLogs(scan, self.keys)
        self._next = 0
        self._lasts: list[Stored | None] = []
        self._last_ns = np.empty(0, np.int64)
        self._ends: list[tuple[int, int]] = []
        self._gone: list[int] = []
        self.frees = scan.node.ttl_ns is not None

    def settle(self, watermark_ns: int) -> None:
        """Take the new rows, run their keys again from there, and show the keys' last rows."""
        del watermark_ns
        news = self._scan.take_news()
        if news is not None:
            self._take(news)
        self._logs.forget(self._logs.end()[0])
        self._withdraw()

    def _take(self, rows: pa.RecordBatch) -> None:
        """Take new rows."""
        slots = self._slots([rows.column(name) for name in self._names])
        first, self._next = self._next, self._next + rows.num_rows
        numbers = np.arange(first, self._next, dtype=np.int64)
        self._logs.take(rows, slots, numbers)
        changed = np.unique(slots)
        self._note(changed, *self._logs.last_of(changed))
        self._show(changed)

    def _slots(self, keys: list[pa.Array]) -> Ints:
        slots: Ints = self.keys.slots(keys)
        self.keys.adopt(slots)
        return slots

    def _note(self, slots: Ints, lasts: Sequence[Stored | None], last_ns: Ints) -> None:
        """Note the last rows of slots, each with the time of its key's last row."""
        self._last_ns = grown(self._last_ns, self.keys.capacity, watermark.NONE)
        self._lasts += [None] * (len(self._last_ns) - len(self._lasts))
        if self.frees:
            is_new = self._last_ns[slots] == watermark.NONE
            for end in zip(last_ns[is_new].tolist(), slots[is_new].tolist(), strict=True):
                heappush(self._ends, end)
        self._last_ns[slots] = last_ns
        for slot, last in zip(slots.tolist(), lasts, strict=True):
            self._lasts[slot] = last

    def _withdraw(self) -> None:
        """Take away the rows of keys with ended states."""
        ttl_ns = self._node.ttl_ns
        if ttl_ns is None or (mark_ns := self._scan.open_ns) == watermark.NONE:
            return
        gone = []
        while self._ends and self._ends[0][0] <= mark_ns - ttl_ns:
            _, slot = heappop(self._ends)
            last_ns = int(self._last_ns[slot])
            if last_ns <= mark_ns - ttl_ns:
                gone.append(slot)
                self._lasts[slot], self._last_ns[slot] = None, watermark.NONE
            else:
                heappush(self._ends, (last_ns, slot))
        if gone:
            slots = np.array(gone, np.int64)
            self._scan.end_last(self.keys.arrays(slots))
            self.column.erase(slots)
            self.uncomputable.forget(slots)
            self._gone += gone

    def results(self, slots: Ints) -> tuple[Ints, dict[str, Any], dict[int, str]]:
        """Return (slots of rows, their fields by name, unreadable ones: none)."""
        found = [self._lasts[slot] for slot in slots.tolist()]
        made = [last for last in found if last is not None]
        kept = slots
        if len(made) < len(found):
            kept = slots[[last is not None for last in found]]
        rows = Rows(key_columns(self.keys, kept), len(made))
        self._scan.step.make(rows, made)
        return kept, {field.name: rows.columns[field.name] for field in self._made}, {}

    def free(self, expired: Ints) -> None:
        """Free the keys of the rows that were taken away; none is final."""
        del expired
        if self._gone:
            gone = np.array(self._gone, np.int64)
            self._gone.clear()
            self._logs.leave(gone)
            self.column.retire(gone)
            self.keys.release(gone)

    @property
    def nbytes(self) -> int:
        """Bytes held, about 200 of them by key."""
        own = self._logs.nbytes + self.keys.index.nbytes + self.column.nbytes
        return own + (200 + 16 * len(self._made)) * len(self.keys.index)

    # --- snapshots: of the scan alone ---

    def load(self, table: pa.Table, watermark_ns: int) -> None:
        """Show the last rows of the scan and of its held rows; the scan was loaded before."""
        del table, watermark_ns
        keys, lasts, last_ns = self._scan.last_rows()
        slots = self._slots(keys)
        self._note(slots, lasts, last_ns)
        if len(slots):
            self._show(np.unique(slots))
        for rows in self._scan.held_rows():
            self._take(rows)

"""Which rows of a table from elsewhere are over, by the window in their key."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ripple.engine.edges.edge_changes import those_of
from ripple.model.window import watermark
from ripple.model.window.timers import Timers

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from ripple.engine.edges.edge_changes import Closes
    from ripple.model.keys.space import KeySpace

    Ints = npt.NDArray[np.int64]


_NONE = np.empty(0, np.int64)


class WindowEnds:
    """Waits for the windows of rows to be over, at every sender; for nothing if they have none.

    Invariant: no row is taken in after its window's end by the last known watermark: its state is
    gone, and a sender's retained rows of it were counted.
    """

    def __init__(self, keys: KeySpace, closes_ns: Closes | None) -> None:
        """Wait for rows of ``keys``; closes_ns: when windows are over, by their starts."""
        self._keys = keys
        self._closes_ns = closes_ns
        self._timers = Timers()
        self._over: list[Ints] = []
        self._reached_ns = watermark.NONE

    def open_of(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Return the rows that may be taken in."""
        if self._closes_ns is None:
            return rows
        return those_of(rows, self._ends_ns(rows) > self._reached_ns)

    def arm(self, slots: Ints, rows: pa.RecordBatch | pa.Table) -> None:
        """Wait for the windows of ``rows``, which are at ``slots``."""
        if self._closes_ns is not None:
            self._timers.arm_new(slots, self._ends_ns(rows), self._keys.capacity)

    def _ends_ns(self, rows: pa.RecordBatch | pa.Table) -> Ints:
        assert self._closes_ns is not None
        return self._closes_ns(rows.column("window_start_ns").to_numpy())

    def reach(self, watermark_ns: int) -> None:
        """Note the windows over at ``watermark_ns``, which every sender has reached."""
        self._reached_ns = watermark_ns
        if self._closes_ns is not None:
            due = self._timers.pop_due(watermark_ns)
            if len(due):
                self._over.append(due)

    def add(self, slots: Ints) -> None:
        """Note rows that their sender says are over."""
        if len(slots):
            self._over.append(slots)

    def take(self) -> Ints:
        """Return the slots of rows that are over, once."""
        if not self._over:
            return _NONE
        over = np.concatenate(self._over)
        self._over.clear()
        return over

    def forget(self, slots: Ints) -> None:
        """Wait no more for ``slots``, which are about to be freed."""
        if self._closes_ns is not None:
            self._timers.disarm(slots)

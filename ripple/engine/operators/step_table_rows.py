"""The rows of a scan from their reading on, corrected when an earlier row of their key comes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ripple.engine.operators.joins.eager_rows import EagerRows
from ripple.engine.operators.rows import Rows
from ripple.engine.operators.step_logs import StepLogs
from ripple.model.keys.space import key_columns, key_space

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from ripple.engine.graph.node import Graph
    from ripple.engine.operators.step_scan_rows import StepScanRows
    from ripple.model.pipeline.nodes import RowTable

    Ints = npt.NDArray[np.int64]


class StepTableRows(EagerRows):
    """The rows of a scan until they are final, each after all rows of its key before it so far.

    A new row runs its key again from where it belongs. Invariant between stabilizations: the logs
    have each row that is not final by its slot, and ``_of_key`` the keys of these.
    """

    def __init__(self, graph: Graph, fold: RowTable, scan: StepScanRows) -> None:
        """Show the rows of ``scan``."""
        super().__init__(graph, fold, scan)
        self._scan, self._node = scan, scan.node
        self._names = [field.name for field in scan.node.key]
        self._of_key = key_space(scan.node.key)
        self._logs = StepLogs(scan, self._of_key)

    def settle(self, watermark_ns: int) -> None:
        """Take the new rows, run their keys again from there, and show the changes."""
        del watermark_ns
        news = self._scan.take_news()
        if news is not None:
            self._take(news)
        over, empty = self._logs.end()
        self._over = np.concatenate([self._over, over])
        self._of_key.release(empty)

    def _take(self, rows: pa.RecordBatch) -> None:
        """Take new rows."""
        slots = self.keys.slots(self._origins(0, rows))
        self.keys.adopt(slots)
        of_key = self._of_key.slots([rows.column(name) for name in self._names])
        self._of_key.adopt(of_key)
        self._show(np.sort(self._logs.take(rows, of_key, slots)))

    def results(self, slots: Ints) -> tuple[Ints, dict[str, Any], dict[int, str]]:
        """Return (slots of rows, their fields by name, why a row failed by slot)."""
        kept, of_key, made, failed = self._logs.made_of(slots)
        rows = Rows(key_columns(self._of_key, of_key), len(kept))
        self._scan.step.make(rows, made)
        shown = {field.name: rows.columns[field.name] for field in self._node.fields_out}
        return kept, shown, failed

    def free(self, expired: Ints) -> None:
        """Free these slots."""
        if len(expired):
            self._release(expired)
            self._logs.forget(expired)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        own = self._logs.nbytes + self._of_key.index.nbytes
        return own + self.keys.index.nbytes + self.column.nbytes

    # --- snapshots: of the scan alone ---

    def load(self, table: pa.Table, watermark_ns: int) -> None:
        """Show the rows that the scan holds, which was loaded before."""
        del table, watermark_ns
        for rows in self._scan.held_rows():
            self._take(rows)

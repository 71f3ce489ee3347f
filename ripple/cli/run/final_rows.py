"""The demo's output: all rows, or the last of each symbol."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.connectors.contract import BasicSink
from ripple.model.keys.space import TextKeys
from ripple.model.schema.types import Field, String

if TYPE_CHECKING:
    from ripple.connectors.contract import Commit, Sink

# Rows held before they are reduced to the last of each symbol.
PENDING_ROWS_MAX = 1 << 18
# Batches whose symbols are counted together.
UNCOUNTED_MAX = 64


class FinalRows(BasicSink):
    """A sink that wraps another: counts rows and symbols, and keeps final rows.

    With ``only_final`` the only ``commit`` writes the last row of each symbol, sorted by symbol;
    memory is bounded by PENDING_ROWS_MAX and the number of symbols.
    """

    def __init__(self, sink: Sink, *, only_final: bool) -> None:
        self.rows_written = 0
        self._sink = sink
        self._only_final = only_final
        self._pending: list[pa.RecordBatch] = []
        self._pending_rows = 0
        self._symbols = TextKeys(Field("symbol", String()))
        self._uncounted: list[pa.RecordBatch] = []

    @property
    def symbols(self) -> int:
        """The number of symbols that had a row."""
        self._count()
        return len(self._symbols.index)

    def write(self, changes: pa.RecordBatch, reached: Commit) -> None:
        """Pass rows on, or hold them."""
        self._uncounted.append(changes)
        if len(self._uncounted) == UNCOUNTED_MAX:
            self._count()
        if not self._only_final:
            self._write(changes, reached)
            return
        self._pending.append(changes)
        self._pending_rows += changes.num_rows
        if self._pending_rows > max(PENDING_ROWS_MAX, 4 * self.symbols):
            self._reduce()

    def commit(self, reached: Commit) -> None:
        """Write the rows that were held, and commit the sink."""
        if self._only_final and self._pending:
            self._reduce()
            (rows,) = self._pending
            symbols = rows.column("symbol").to_pylist()
            order = sorted(range(len(symbols)), key=symbols.__getitem__)
            self._write(rows.take(pa.array(order)), reached)
        self._sink.commit(reached)

    def close(self) -> None:
        """Close the sink."""
        self._sink.close()

    def _write(self, rows: pa.RecordBatch, reached: Commit) -> None:
        self._sink.write(rows, reached)
        self.rows_written += rows.num_rows

    def _count(self) -> None:
        """Count the new symbols."""
        if self._uncounted:
            column = pa.Table.from_batches(self._uncounted).column("symbol")
            self._symbols.slots([column.combine_chunks()])
            self._uncounted.clear()

    def _reduce(self) -> None:
        """Keep only the last row of each symbol."""
        rows = pa.concat_batches(self._pending)
        slots = self._symbols.slots([rows.column("symbol")])
        last = np.full(self._symbols.capacity, -1)
        np.maximum.at(last, slots, np.arange(len(slots)))
        self._pending = [rows.take(pa.array(last[last >= 0]))]
        self._pending_rows = self._pending[0].num_rows

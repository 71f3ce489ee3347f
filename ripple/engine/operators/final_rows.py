"""The final rows of a windowed fold, on their way into a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ripple.engine.kernels.columns import Columns
from ripple.engine.operators.result_rows import row_arrays
from ripple.engine.operators.rows import Rows
from ripple.engine.operators.uncomputable import Failure, UncomputableRow
from ripple.engine.operators.waiting import settled_ns
from ripple.model.keys.space import key_columns
from ripple.model.pipeline.nodes import FLAT_ROWS_MAX, WINDOW_FIELD_NAMES

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from ripple.engine.operators.feeds import Feeds
    from ripple.engine.operators.rows import RejectedRow
    from ripple.engine.operators.stream_rows import StreamRows
    from ripple.engine.operators.windowed_fold import WindowedFold

    Ints = npt.NDArray[np.int64]


class FinalRows:
    """Rows of a fold that become final, each once.

    Which do at one watermark is a function of that watermark, and all with one window end do at
    once: so their order, by window end and then by key, is that of their places in any batches.
    """

    nbytes = 0
    given = 0

    def __init__(self, leaf: WindowedFold, feeds: Feeds, base: int) -> None:
        """Take rows of ``leaf`` from now on.

        feeds: the inputs that the fold waits for. base: the place of the first row of each window
        end.
        """
        leaf.newly_over = []
        self._leaf = leaf
        self._feeds = feeds
        self._base = base
        self._taken = np.empty(0, np.int64)
        self._by = [(name, "ascending") for name in self._order()]

    def _order(self) -> list[str]:
        return [WINDOW_FIELD_NAMES[1], *(field.name for field in self._leaf.fold.key)]

    @property
    def watermark_ns(self) -> int:
        """No row below follows: each came when the fold's watermark was past it by the lateness."""
        return settled_ns(self._feeds.watermark_ns, self._leaf.spec.lateness_ns)

    def take(self) -> Rows | None:
        """Return the rows that became final since the last call, None if none did."""
        leaf = self._leaf
        over, leaf.newly_over = leaf.newly_over, []
        if not over:
            return None
        slots = np.concatenate(over)
        slots = slots[leaf.column.has_rows(slots)]
        if not len(slots):
            return None
        columns = self._columns(slots)
        order = pc.sort_indices(pa.table(columns), self._by).to_numpy().astype(np.int64)
        columns = {name: column.take(pa.array(order)) for name, column in columns.items()}
        slots = slots[order]
        ends = leaf.windows.ends_ns(slots)
        rank = np.arange(len(ends)) - np.searchsorted(ends, ends)
        rows = Rows(Columns(columns), len(slots), self._base + rank * FLAT_ROWS_MAX)
        rows.times_ns = ends - 1
        self._taken = slots
        self.given += len(slots)
        return rows

    def show(self, stream: StreamRows, name: str, rows: Rows) -> None:
        """Show some of the rows taken last: their identities are hashes of key and window."""
        assert rows.offsets is not None
        stream.add(name, rows, self.identities(rows), rows.offsets % FLAT_ROWS_MAX)

    def identities(self, rows: Rows) -> Ints:
        """Return the hashes of key and window of some of the rows taken last."""
        hashes: Ints = self._leaf.column.keys.hashes(self._taken[rows.origins]).view(np.int64)
        return hashes

    def lose(self, refused: Iterable[RejectedRow]) -> None:
        """Count them among the results of the fold that cannot be computed."""
        bad = list(refused)
        slots = self._taken[[one.row for one in bad]] if bad else self._taken[:0]
        keys = zip(*(a.to_pylist() for a in self._leaf.column.keys.arrays(slots)), strict=True)
        self._leaf.uncomputable.lose(
            UncomputableRow(key, *Failure.of(one.step, one.reason))
            for key, one in zip(keys, bad, strict=True)
        )

    def _columns(self, slots: Ints) -> dict[str, pa.Array]:
        column, results = self._leaf.column, self._leaf.result_rows
        arrays = row_arrays(column.rows(slots), None)
        shown = {field.name: array for field, array in zip(results.fields, arrays, strict=True)}
        return {**key_columns(column.keys, slots), **shown}

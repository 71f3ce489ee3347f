"""The final rows of a windowed fold, on their way into a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ripple.engine.kernels.columns import Columns
from ripple.engine.operators.result_rows import row_arrays
from ripple.engine.operators.rows import Rows
from ripple.model.pipeline.plan import FLAT_ROWS_MAX, WINDOW_FIELD_NAMES
from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    import numpy.typing as npt

    from ripple.engine.operators.windowed_fold import WindowedFold

    Ints = npt.NDArray[np.int64]

    class Mark(Protocol):
        """What has a watermark: an input, or a stream of final rows."""

        @property
        def watermark_ns(self) -> int:
            """No row of it on time is missing below."""


class FinalBatch(NamedTuple):
    """Rows that became final in one settling, in their order.

    slots: of each in the fold. identities: of each a hash of its key and window, for digests.
    """

    rows: Rows
    slots: Ints
    identities: Ints


class FinalRows:
    """Rows of a fold that become final, each once.

    Which do at one watermark is a function of that watermark, and all with one window end do at
    once: so their order, by window end and then by key, is that of their places in any batches.
    """

    def __init__(self, leaf: WindowedFold, feeds: Sequence[Mark], base: int) -> None:
        """Take rows of ``leaf`` from now on.

        feeds: what the fold waits for. base: the place of the first row of each window end.
        """
        leaf.newly_over = []
        self._leaf = leaf
        self._feeds = feeds
        self._base = base
        self._by = [(name, "ascending") for name in self._order()]

    def _order(self) -> list[str]:
        return [WINDOW_FIELD_NAMES[1], *(field.name for field in self._leaf.fold.key)]

    @property
    def watermark_ns(self) -> int:
        """No row below follows: each came when the fold's watermark was past it by the lateness."""
        reached_ns = min(feed.watermark_ns for feed in self._feeds)
        if reached_ns in (watermark.NONE, watermark.END):
            return reached_ns
        return max(reached_ns - self._leaf.spec.lateness_ns, watermark.NONE)

    def take(self) -> FinalBatch | None:
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
        return FinalBatch(rows, slots, leaf.column.keys.hashes(slots).view(np.int64))

    def _columns(self, slots: Ints) -> dict[str, pa.Array]:
        column, results = self._leaf.column, self._leaf.result_rows
        keys = zip(column.keys.fields, column.keys.arrays(slots), strict=True)
        arrays = row_arrays(column.rows(slots), None)
        shown = zip(results.fields, arrays, strict=True)
        return {field.name: array for field, array in (*keys, *shown)}

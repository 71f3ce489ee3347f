"""Rows of a stream in order, found by their key and a near time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from ripple.engine.kernels.runs import Runs
from ripple.engine.operators.held_rows import TIME
from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

_MERGED_ROWS_MAX = 1024
_UNFREED_MAX = 4096


class Part(NamedTuple):
    """Rows with rising numbers, from ``first`` on."""

    first: int
    rows: pa.RecordBatch

    @property
    def last_ns(self) -> int:
        """The greatest event time."""
        return int(np.asarray(self.rows.column(TIME))[-1])


class NearRows:
    """Rows by (time, place), numbered in that order, and found by slot and time.

    Invariant: parts have each row of ``_runs``. Freed ones go with the rest of their part, or of
    their slot, once they may be as many as the others.
    """

    def __init__(self, schema: pa.Schema) -> None:
        """Hold no rows; schema: of those to come, with their times."""
        self._runs = Runs()
        self._parts: list[Part] = []
        self._numbers = 0
        self._kept = 0
        self._nothing = pa.RecordBatch.from_pylist([], schema)

    def add(self, batch: pa.RecordBatch, slots: Ints, capacity: int, free_ns: int) -> None:
        """Add rows after all others, of slots that are each below ``capacity``.

        free_ns: rows before it are not asked for any more.
        """
        times = np.asarray(batch.column(TIME))
        self._runs.add(slots, times, self._numbers, capacity, free_ns)
        first, self._numbers = self._numbers, self._numbers + batch.num_rows
        while self._parts and self._is_small(self._parts[-1].rows.num_rows, batch.num_rows):
            first, rows = self._parts.pop()
            batch = pa.concat_batches([rows, batch])
        self._parts.append(Part(first, batch))
        self._drop_below(free_ns)

    @staticmethod
    def _is_small(before: int, count: int) -> bool:
        """Return whether the rows of two parts are to be one."""
        return before <= 2 * count and before + count <= _MERGED_ROWS_MAX

    def match(
        self, slots: Ints, times: Ints, lo_ns: int, hi_ns: int, most: int, *piece: Any
    ) -> tuple[Ints, Ints]:
        """Return how many rows are near to each time, and their numbers; see ``Runs.match``."""
        return self._runs.match(slots, times, lo_ns, hi_ns, most, *piece)

    def columns(self, numbers: Ints, names: Sequence[str]) -> list[Any]:
        """Return columns of rows by their numbers; of -1 with nulls."""
        first = self._parts[0].first if self._parts else 0
        at = pa.array(numbers - first, mask=numbers < 0)
        parts = [one.rows for one in self._parts] or [self._nothing]
        found = (pa.chunked_array([rows.column(name) for rows in parts]).take(at) for name in names)
        return [one.combine_chunks() for one in found]

    @property
    def count(self) -> int:
        """The number of rows, with freed ones until they are removed."""
        return self._runs.count

    def has_grown(self, keys: int) -> bool:
        """Return whether it is time to free rows: so many came since, and so many keys are held."""
        return self._runs.count + keys > 2 * self._kept + _UNFREED_MAX

    def free_below(self, mark_ns: int, slots: Ints) -> Ints:
        """Free the rows below a mark, in all slots; return those slots that have none left."""
        empty = self._runs.free_below(slots, mark_ns)
        self._drop_below(mark_ns)
        self._kept = self._runs.count + len(slots) - len(empty)
        return empty

    def _drop_below(self, mark_ns: int) -> None:
        """Drop the parts wholly below a mark."""
        gone = (at for at, one in enumerate(self._parts) if one.last_ns >= mark_ns)
        del self._parts[: next(gone, None)]

    def parts(self, mark_ns: int) -> list[pa.RecordBatch]:
        """Return the rows from a mark on."""
        rows = [one.rows for one in self._parts]
        if mark_ns == watermark.NONE:
            return rows
        return [self._cut(one, mark_ns)[1] for one in rows]

    @staticmethod
    def _cut(rows: pa.RecordBatch, mark_ns: int) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """Return the rows below a mark, and those from it on."""
        at = int(np.searchsorted(np.asarray(rows.column(TIME)), mark_ns))
        return rows.slice(0, at), rows.slice(at)

    def between(self, from_ns: int, mark_ns: int) -> list[pa.RecordBatch]:
        """Return the rows from a mark on, below another one."""
        parts = [self._cut(rows, mark_ns)[0] for rows in self.parts(from_ns)]
        return [rows for rows in parts if rows.num_rows]

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        held: int = sum(one.rows.nbytes for one in self._parts)
        return held + self._runs.nbytes

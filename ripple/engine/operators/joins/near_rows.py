"""Rows of a stream in order, found by their key and a near time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.engine.kernels.runs import Runs
from ripple.engine.kernels.stored import Stored, gathered
from ripple.engine.operators.held_rows import TIME, batches_of
from ripple.engine.operators.passed_rows import Parts
from ripple.model.schema.exported import Made
from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

_UNDROPPED_MAX = 1024
_UNFREED_MAX = 4096


class NearRows:
    """Rows by (time, place), numbered in that order, and found by slot and time.

    Invariant: ``rows`` has each row of ``_runs`` that may be asked for, the one with number
    ``first`` at its beginning. Freed ones go once they may be as many as the others; in a slot,
    with the rest of its rows.
    """

    def __init__(self, schema: pa.Schema) -> None:
        """Hold no rows; schema: of those to come, with their times."""
        self.rows = Stored(schema, Parts)
        self.first = 0
        self._schema = schema
        self._runs = Runs()
        self._kept = 0

    def add(self, rows: pa.RecordBatch | Made, slots: Ints, capacity: int, free_ns: int) -> None:
        """Add rows after all others, of slots that are each below ``capacity``.

        free_ns: rows before it are not asked for any more.
        """
        if isinstance(rows, Made):
            self.rows.add_made(rows)
        else:
            self.rows.add(rows.columns, rows.num_rows)
        numbers = np.arange(self.rows.count - len(slots), self.rows.count)
        self._order(slots, self.rows.words(TIME, numbers), capacity, free_ns)

    def add_some(
        self, rows: Stored, numbers: Ints, slots: Ints, capacity: int, free_ns: int
    ) -> None:
        """Add rows stored elsewhere."""
        self.rows.add_some(rows, numbers)
        self._order(slots, rows.words(TIME, numbers), capacity, free_ns)

    def _order(self, slots: Ints, times: Ints, capacity: int, free_ns: int) -> None:
        """Index the last added rows."""
        before = self.rows.count - len(slots)
        self._runs.add(slots, times, self.first + before, capacity, free_ns)
        self._drop_below(free_ns)

    def match(
        self, slots: Ints, times: Ints, lo_ns: int, hi_ns: int, most: int, *piece: Any
    ) -> tuple[Ints, Ints]:
        """Return how many rows are near to each time, and their numbers; see ``Runs.match``."""
        return self._runs.match(slots, times, lo_ns, hi_ns, most, *piece)

    def at(self, numbers: Ints) -> Ints:
        """Return where rows are in ``rows``, -1 for -1."""
        return np.where(numbers < 0, -1, numbers - self.first)

    def columns(self, numbers: Ints, names: Sequence[str]) -> list[Any]:
        """Return columns of rows by their numbers; of -1 with nulls."""
        schema = pa.schema([self._schema.field(name) for name in names])
        parts = [(self.rows, schema.names, self.at(numbers))]
        found: list[Any] = gathered(schema, len(numbers), parts).arrow().columns
        return found

    @property
    def count(self) -> int:
        """The number of rows, with freed ones until they are removed."""
        return self._runs.count

    def has_grown(self, others: int) -> bool:
        """Return whether it is time to free rows, by the number added since the last time.

        others: the number of further items to visit then, such as keys.
        """
        return self._runs.count + others > 2 * self._kept + _UNFREED_MAX

    def free_below(self, mark_ns: int, slots: Ints, waiting: int = 0) -> Ints:
        """Free the rows below a mark, in all slots; return the slots without any left.

        waiting: the number of further rows to visit.
        """
        empty = self._runs.free_below(slots, mark_ns)
        self._drop_below(mark_ns)
        self._kept = self._runs.count + len(slots) - len(empty) + waiting
        return empty

    def _drop_below(self, mark_ns: int) -> None:
        """Drop the rows below a mark, once they are as many as the others."""
        gone = self._place(mark_ns)
        if 2 * gone > self.rows.count + _UNDROPPED_MAX:
            self.rows.keep(np.arange(gone, self.rows.count))
            self.first += gone

    def _place(self, mark_ns: int) -> int:
        """Return where the first row from a mark on is."""
        return 0 if mark_ns == watermark.NONE else self.rows.first_from(TIME, mark_ns)

    def parts(self, mark_ns: int) -> list[pa.RecordBatch]:
        """Return the rows from a mark on."""
        return self._batches(self._place(mark_ns), self.rows.count)

    def count_from(self, mark_ns: int) -> int:
        """Return the number of rows from a mark on."""
        return self.rows.count - self._place(mark_ns)

    def between(self, from_ns: int, mark_ns: int) -> list[pa.RecordBatch]:
        """Return the rows from a mark on, below another one."""
        return self._batches(self._place(from_ns), self._place(mark_ns))

    def times_between(self, from_ns: int, mark_ns: int) -> Ints:
        """Return the event times of these rows."""
        return self.rows.words(TIME, np.arange(self._place(from_ns), self._place(mark_ns)))

    def _batches(self, begin: int, end: int) -> list[pa.RecordBatch]:
        return batches_of(self.rows, self._schema, np.arange(begin, end))

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.rows.nbytes + self._runs.nbytes

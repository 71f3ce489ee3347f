"""The rows of one side of an outer interval join below its mark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.engine.operators.held_rows import TIME, in_order
from ripple.engine.operators.joins.near_rows import NearRows

if TYPE_CHECKING:
    import numpy.typing as npt

    from ripple.engine.operators.joins.join_side import JoinSide

    Ints = npt.NDArray[np.int64]


class KnownSide:
    """Rows of one side below its mark: possible partners, and those with a null key."""

    def __init__(self, side: JoinSide) -> None:
        """Know no rows of a side."""
        self.side = side
        self.near = NearRows(side.held.schema)
        self.alone = side.held.empty()

    @property
    def count(self) -> int:
        """The number of rows."""
        return self.near.count + self.alone.count

    def due(self, from_ns: int, mark_ns: int) -> pa.RecordBatch:
        """Return the rows from a mark on and below another one, in their order.

        Rows with a null key are held until ``pass_below``.
        """
        found = self.near.between(from_ns, mark_ns) + self.alone.batches(self._alone_below(mark_ns))
        if not found:
            return pa.RecordBatch.from_pylist([], self.side.held.schema)
        return in_order(pa.concat_batches(found))

    def count_due(self, from_ns: int, mark_ns: int) -> int:
        """Return how many they are at most."""
        return self.near.count_from(from_ns) - self.near.count_from(mark_ns) + self.alone.count

    def due_times(self, from_ns: int, mark_ns: int) -> Ints:
        """Return the event times of these rows, in any order."""
        near = self.near.times_between(from_ns, mark_ns)
        alone = self.alone.rows.words(TIME, self._alone_below(mark_ns))
        return np.concatenate([near, alone])

    def pass_below(self, mark_ns: int) -> None:
        """Take notice that the rows below a mark had their turn."""
        self.alone.take_numbers(mark_ns)
        self.alone.forget()

    def _alone_below(self, mark_ns: int) -> Ints:
        numbers = self.alone.waiting.numbers()
        below: Ints = numbers[self.alone.rows.words(TIME, numbers) < mark_ns]
        return below

"""The rows of both sides of an outer interval join that are due, in one order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.engine.operators.held_rows import PLACE, TIME, in_order
from ripple.engine.operators.joins.interval_rows import Due
from ripple.engine.operators.joins.near_rows import NearRows
from ripple.model.pipeline.nodes import FLAT_ROWS_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ripple.engine.operators.joins.join_side import JoinSide
    from ripple.model.schema.types import Field

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

        Those of them with a null key are held until ``pass_below``.
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


class DueOfBoth(Due[pa.RecordBatch]):
    """Rows of the left side, and those of the right one without a partner, in one order.

    order: of each its number among the left rows, or, past those, among the right ones. keys: the
    columns of all, by their names on the left.
    """

    def __init__(
        self,
        rows: tuple[pa.RecordBatch, pa.RecordBatch],
        slots: Ints,
        on: Sequence[tuple[Field, Field]],
    ) -> None:
        """slots: of the left rows. on: the compared fields."""
        left, self.right = rows
        times, places = (of_both(*(one.column(name) for one in rows)) for name in (TIME, PLACE))
        is_right = np.arange(len(times)) >= left.num_rows
        self.order = order = np.lexsort((places, is_right, places // FLAT_ROWS_MAX, times))
        known = np.concatenate([slots, np.full(self.right.num_rows, -1, np.int64)])
        super().__init__(left, known[order], times[order], places[order])
        at = pa.array(order)
        self.keys: dict[str, pa.Array] = {
            mine.name: pa.concat_arrays(
                [left.column(mine.name), self.right.column(theirs.name)]
            ).take(at)
            for mine, theirs in on
        }


def of_both(left: pa.Array, right: pa.Array) -> Ints:
    """Return a column of integers of both sides, the left one first."""
    return np.concatenate([np.asarray(left), np.asarray(right)])

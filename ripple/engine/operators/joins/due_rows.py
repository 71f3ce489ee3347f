"""The rows of both sides of an outer interval join that are due, in one order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.engine.operators.held_rows import PLACE, TIME
from ripple.engine.operators.joins.interval_rows import Due
from ripple.model.pipeline.nodes import FLAT_ROWS_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ripple.model.schema.types import Field

    Ints = npt.NDArray[np.int64]


class DueOfBoth(Due[pa.RecordBatch]):
    """Rows of the left side, and unmatched rows of the right one, in one order.

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

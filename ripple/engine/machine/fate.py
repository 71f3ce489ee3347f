"""The fate of the records of a batch, each of which counts in all branches or in none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from ripple.engine.operators.rows import RejectedRow, Rows

    Ints = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

_NONE = np.empty(0, np.int64)


class Fate:
    """The fate of each record of a batch, by its index there.

    Invariant: a record is refused for the first reason, in the order of the plan's nodes.
    """

    def __init__(self, count: int, rows: Rows) -> None:
        self._refused: dict[int, RejectedRow] = {}
        self._count = count
        self._late: Mask | None = None
        self._taken: list[Ints | None] = []  # per reader its records, None for all
        self.note_refused(rows)

    def note_refused(self, rows: Rows) -> None:
        """Take over the refusals of some of its rows."""
        for bad in rows.rejected:
            self._refused.setdefault(bad.row, bad)
        rows.rejected = []

    def drop_late(self, rows: Rows, late: Mask | None) -> None:
        """Drop the rows too late for a window."""
        if late is not None:
            mine = late & self._mask_of(rows.origin)
            self._late = mine if self._late is None else self._late | mine
            rows.keep(~late[rows.origins])

    def count_in(self, rows: Rows) -> None:
        """Drop the rows of refused records, and note that the others count."""
        if self._refused:
            alive = np.ones(self._count, np.bool_)
            alive[list(self._refused)] = False
            rows.keep(alive[rows.origins])
        self._taken.append(rows.origin)

    @property
    def dead(self) -> list[RejectedRow]:
        """The refused records."""
        return list(self._refused.values())

    @property
    def very_late(self) -> int:
        """The number of records that reached closed windows alone."""
        return len(self.too_late)

    @property
    def too_late(self) -> Ints:
        """The records that reached closed windows alone."""
        if self._late is None:
            return _NONE
        late = self._late.copy()
        for taken in self._taken:
            late &= ~self._mask_of(taken)
        late[list(self._refused)] = False
        return np.flatnonzero(late)

    def _mask_of(self, origin: Ints | None) -> Mask:
        """Return which records have rows, by the records of these; None for each its own."""
        if origin is None:
            return np.ones(self._count, np.bool_)
        mask = np.zeros(self._count, np.bool_)
        mask[origin] = True
        return mask

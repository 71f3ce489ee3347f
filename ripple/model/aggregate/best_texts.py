"""First, last, min and max of texts and truth values, for insert-only streams.

The state is the best value of each slot. Its dump is that of the ordered multisets of plain, with
one entry, so that either reads the other's dumps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ripple.model.aggregate.best import BestOf
from ripple.model.aggregate.best_columns import arrow_of, int64s, letter_of, spread, strip
from ripple.model.aggregate.orders import lists

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from ripple.model.aggregate.contract import Column, Slots, Values
    from ripple.model.schema.types import FieldType


class _Best:
    """The best of each slot, as ``best`` has it."""

    def __init__(self, of: FieldType, best: BestOf) -> None:
        self._of, self._best = of, best
        self.resize, self.remove = best.resize, best.remove
        self.merge, self.clear = best.merge, best.clear

    @property
    def nbytes(self) -> int:
        """Bytes of memory held."""
        return self._best.nbytes


class BestValues(_Best):
    """The smallest value of each slot so far, or with ``last`` the largest."""

    def __init__(self, of: FieldType, *, last: bool) -> None:
        best = BestOf(limit=1, by=letter_of(of), largest=last, latest=False, kinds="")
        super().__init__(of, best)

    def add(self, slots: Slots, values: Values) -> None:
        """Add each value to its slot."""
        nowhere = np.zeros(len(slots), np.int64)
        self._best.add(slots, strip(values, self._of), [], nowhere, nowhere)

    def result(self, slots: Slots) -> Column:
        """Read the best values."""
        starts, _, by, _ = self._best.encode(slots)
        return spread(by, self._of, np.diff(starts).astype(np.bool_))

    def dump(self, slots: Slots) -> dict[str, pa.Array]:
        """Return values and counts as lists."""
        starts, _, by, _ = self._best.encode(slots)
        values = arrow_of(by, self._of)
        return lists(starts, values=values, counts=np.ones(len(values), np.int64))

    def load(self, slots: Slots, arrays: Mapping[str, pa.Array]) -> None:
        """Replace the slots' values by dumped ones."""
        self.clear(slots)
        self.add(_repeated(slots, arrays), arrays["values"].flatten())


class BestEvents(_Best):
    """The value of the first event of each slot, or with ``last`` of the last."""

    def __init__(self, of: FieldType, *, last: bool) -> None:
        best = BestOf(limit=1, by="", largest=False, latest=last, kinds=letter_of(of))
        super().__init__(of, best)

    def add(self, slots: Slots, values: Values, time_ns: Values, offset: Values) -> None:
        """Add each event to its slot."""
        self._best.add(slots, None, [strip(values, self._of)], int64s(time_ns), int64s(offset))

    def result(self, slots: Slots) -> Column:
        """Read the values of the best events."""
        starts, _, _, (values,) = self._best.encode(slots)
        return spread(values, self._of, np.diff(starts).astype(np.bool_))

    def dump(self, slots: Slots) -> dict[str, pa.Array]:
        """Return places, values and counts as lists."""
        starts, places, _, (values,) = self._best.encode(slots)
        time_ns, offset = places.T
        counts = np.ones(len(places), np.int64)
        values = arrow_of(values, self._of)
        return lists(starts, time_ns=time_ns, offset=offset, values=values, counts=counts)

    def load(self, slots: Slots, arrays: Mapping[str, pa.Array]) -> None:
        """Replace the slots' events by dumped ones."""
        self.clear(slots)
        columns = [arrays[name].flatten() for name in ("values", "time_ns", "offset")]
        self.add(_repeated(slots, arrays), *columns)


def _repeated(slots: Slots, arrays: Mapping[str, pa.Array]) -> Slots:
    return np.repeat(slots, np.diff(arrays["values"].offsets.to_numpy()))

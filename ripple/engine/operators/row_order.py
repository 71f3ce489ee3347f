"""Rows in the order of their slots, times and places, among which others may come."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

_INT64 = np.iinfo(np.int64)
FIRST_NS, LAST_NS = int(_INT64.min), int(_INT64.max)


class RowOrder:
    """The numbers of rows by (slot, time, place), in arrays into which more are inserted.

    A place is below 2^63 - 1, and no slot is negative. ``at`` in the methods below counts in this
    order.
    """

    def __init__(self) -> None:
        """Have no rows."""
        self.slots = self.times = self.numbers = self._places = np.empty(0, np.int64)

    def __len__(self) -> int:
        return len(self.numbers)

    def add(self, slots: Ints, times: Ints, places: Ints, numbers: Ints) -> Ints:
        """Add rows; return where they are now, in their order."""
        order = np.lexsort((places, times, slots))
        slots, times, places = slots[order], times[order], places[order]
        at = self._below(slots, times, places)
        self.slots = np.insert(self.slots, at, slots)
        self.times = np.insert(self.times, at, times)
        self._places = np.insert(self._places, at, places)
        self.numbers = np.insert(self.numbers, at, numbers[order])
        return at + np.arange(len(at))

    def first_at(self, slots: Ints, times: Ints) -> Ints:
        """Return where the rows of these slots from these times on begin."""
        return self._below(slots, times, np.full(len(slots), FIRST_NS))

    def end_at(self, slots: Ints, times: Ints) -> Ints:
        """Return where the rows of these slots up to these times end."""
        return self._below(slots, times, np.full(len(slots), LAST_NS))

    def _below(self, slots: Ints, times: Ints, places: Ints) -> Ints:
        """Return how many rows stand before each of these: a search by halves, for all at once."""
        lo = np.searchsorted(self.slots, slots)
        hi = np.searchsorted(self.slots, slots, "right")
        for _ in range(int((hi - lo).max(initial=0)).bit_length()):
            is_open = lo < hi
            middle = np.where(is_open, (lo + hi) >> 1, 0)
            time = self.times[middle]
            is_less = (time < times) | ((time == times) & (self._places[middle] < places))
            lo = np.where(is_open & is_less, middle + 1, lo)
            hi = np.where(is_open & ~is_less, middle, hi)
        return lo

    def renumbered(self, numbers: Ints) -> RowOrder:
        """Return some of the rows under new numbers; numbers: by the old one, -1 for none."""
        found, new = RowOrder(), numbers[self.numbers]
        kept = new >= 0
        found.slots, found.times = self.slots[kept], self.times[kept]
        found._places, found.numbers = self._places[kept], new[kept]
        return found

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return 4 * self.numbers.nbytes


def earlier(times: Ints, span_ns: int) -> Ints:
    """Return times less a span, or the first one there is."""
    span = min(span_ns, LAST_NS)
    return np.where(times < FIRST_NS + span, FIRST_NS, times - span)


def later(times: Ints, span_ns: int) -> Ints:
    """Return times and a span more, or the last one there is."""
    span = min(span_ns, LAST_NS)
    return np.where(times > LAST_NS - span, LAST_NS, times + span)

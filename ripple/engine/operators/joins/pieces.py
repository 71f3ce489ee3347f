"""Pairs of joins piece by piece: those of a hot key in one batch are not made at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

PAIRS_AT_ONCE = 1 << 18
"""With so many pairs a piece ends: beyond are at most those of one more row, or record."""


def pieces(counts: npt.NDArray[np.int64]) -> Iterator[slice]:
    """Yield the next rows; counts: the number of pairs of each."""
    ends, begin = np.cumsum(counts), 0
    while begin < len(counts):
        made = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, made + PAIRS_AT_ONCE, side="right")))
        yield slice(begin, end)
        begin = end

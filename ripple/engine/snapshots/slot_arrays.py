"""Arrays indexed by slot that grow with their key space."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]


def grown(array: Ints, size: int, fill: int) -> Ints:
    """Return ``array`` with at least ``size`` entries, the new ones ``fill``."""
    if size <= len(array):
        return array
    larger = np.full(size, fill, np.int64)
    larger[: len(array)] = array
    return larger

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
    # By a half more: key spaces grow by an eighth, and each time all would be copied.
    larger = np.empty(max(size, len(array) * 3 // 2), np.int64)
    larger[: len(array)] = array
    larger[len(array) :] = fill
    return larger


def order_by_slot(slots: Ints) -> Ints:
    """Return the positions of slots from 0, ordered by slot; positions of one slot stay in order.

    Numbers of 16 bits are sorted by radix, which takes a twentieth of the time.
    """
    order = np.argsort(slots.astype(np.uint16), kind="stable")
    above = slots >> 16
    while above.any():
        order = order[np.argsort(above[order].astype(np.uint16), kind="stable")]
        above = above >> 16
    return order

"""The rows of a key from their reading on until they are final, in their order."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from ripple.engine.kernels.row_order import RowOrder
from ripple.model.window import watermark

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

Key: TypeAlias = tuple[Any, ...]
Mark: TypeAlias = tuple[int, int]
"""The time and the place of a row."""

E = TypeVar("E")
L = TypeVar("L", bound="KeyLog[Any]")


class KeyLog(Generic[E]):
    """The rows of a key that are not final, in their order: an entry and a mark for each."""

    __slots__ = ("entries", "marks")

    def __init__(self) -> None:
        self.marks: list[Mark] = []
        self.entries: list[E] = []

    def add(self, mark: Mark, entry: E) -> int:
        """Take a row where it belongs; return its place."""
        at = len(self.marks)
        if self.marks and mark < self.marks[-1]:
            at = bisect_left(self.marks, mark)
        self.marks.insert(at, mark)
        self.entries.insert(at, entry)
        return at

    def drop(self, count: int) -> None:
        """Forget the first, final rows."""
        del self.marks[:count], self.entries[:count]


def drop_final(logs: dict[Key, L], keys: Iterable[Key]) -> list[L]:
    """Forget the first row of a key for each time it is named; return the logs without rows.

    They are in ``logs`` no more.
    """
    emptied = []
    for key, count in Counter(keys).items():
        logs[key].drop(count)
        if not logs[key].marks:
            emptied.append(logs.pop(key))
    return emptied


def take_final(ends: RowOrder, mark_ns: int) -> tuple[Ints, RowOrder]:
    """Return the numbers of the rows that a watermark makes final, in order, and the rest."""
    if mark_ns == watermark.END:
        return ends.rows()[2], RowOrder()
    return ends.take_below(mark_ns), ends

"""The numbers of charts: each tick of the last minutes, and earlier ones by half minutes.

A row of nulls is a gap: nobody measured there, and a chart has no line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

FINE = 600  # ticks
COARSE_MS = 30_000
COARSE = 2_880  # of a day
# Longer than a tick of a busy server.
GAP_MS = 5_000

Row = list[float | None]


class History:
    """The rows, oldest first: a time in milliseconds, and the value of each name, None if unknown.

    Invariant: at most FINE rows of ticks, and COARSE of half minutes before them.
    """

    def __init__(self, names: Mapping[str, bool]) -> None:
        """Begin without rows.

        names: whether a half minute has the largest of its values, such as of an age, instead of
        their mean.
        """
        self._is_greatest = dict(names)
        self._fine: list[Row] = []
        self._coarse: list[Row] = []
        self._open: list[Row] = []  # older than the fine rows, of one half minute

    @property
    def names(self) -> list[str]:
        """The names of the values of a row."""
        return ["time_ms", *self._is_greatest]

    @property
    def rows(self) -> list[Row]:
        """The rows, oldest first."""
        return [*self._coarse, *self._closed(), *self._fine]

    def add(self, time_ms: int, values: Mapping[str, float | None]) -> None:
        """Add the values of a tick."""
        if self._fine and time_ms - (before_ms := self._fine[-1][0] or 0) > GAP_MS:
            self._fine.append([before_ms + 1, *(None for _ in self._is_greatest)])
        self._fine.append([time_ms, *(values.get(name) for name in self._is_greatest)])
        while len(self._fine) > FINE:
            self._leave(self._fine.pop(0))

    def _leave(self, row: Row) -> None:
        is_gap = all(value is None for value in row[1:])
        if self._open and (is_gap or _half(self._open[0]) != _half(row)):
            self._coarse += self._closed()
            self._open = []
        if is_gap:
            self._coarse.append(row)
        else:
            self._open.append(row)
        del self._coarse[:-COARSE]

    def _closed(self) -> list[Row]:
        """Return the row of the open half minute, if there is one."""
        if not self._open:
            return []
        row: Row = [self._open[0][0]]
        for at, is_greatest in enumerate(self._is_greatest.values(), 1):
            known = [one for each in self._open if (one := each[at]) is not None]
            mean_or_most = max(known, default=None) if is_greatest else _mean(known)
            row.append(mean_or_most)
        return [row]


def _mean(known: list[float]) -> float | None:
    return sum(known) / len(known) if known else None


def _half(row: Row) -> int:
    return int(row[0] or 0) // COARSE_MS

"""Columns of rows some of which were dropped: copied when they are read, not before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from ripple.expression.bound import Values, numbers
from ripple.expression.typed import Kind
from ripple.keys.space import Picked

Ints = npt.NDArray[np.int64]

_NUMBERS = {pa.int64(): Kind.INT, pa.float64(): Kind.FLOAT, pa.bool_(): Kind.BOOL}


class Columns(Mapping[str, Any]):
    """Columns by name, whatever form an expression takes.

    Invariant: each of _layers has the columns that came at one time and the positions in them of
    the rows that are left, None for all; a name means its column in the last layer that has it.
    """

    __slots__ = ("_layers", "_read")

    def __init__(self, columns: dict[str, Any]) -> None:
        self._layers: list[tuple[dict[str, Any], Ints | None]] = [(columns, None)]
        self._read: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._read:
            column, left = self._came(name)
            self._read[name] = column if left is None else picked(column, left)
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter({name: None for columns, _ in self._layers for name in columns})

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def key(self, name: str) -> Any:
        """Return a column as a key space takes it: text is not copied even then."""
        column, left = self._came(name)
        if left is not None and isinstance(column, pa.Array) and column.type not in _NUMBERS:
            return Picked(column, left)
        column = self[name]
        return (
            column if isinstance(column, pa.Array) else pa.array(getattr(column, "values", column))
        )

    def add(self, columns: dict[str, Any]) -> None:
        """Add columns of the rows that are left, in the place of those of the same names."""
        self._layers.append((columns, None))
        self._read.update(columns)

    def keep(self, kept: Ints) -> None:
        """Drop the rows that are not at these positions, rising."""
        self._layers = [
            (columns, kept if left is None else left[kept]) for columns, left in self._layers
        ]
        self._read = {}

    def _came(self, name: str) -> tuple[Any, Ints | None]:
        for columns, left in reversed(self._layers):
            if name in columns:
                return columns[name], left
        raise KeyError(name)


def picked(column: Any, rows: Ints) -> Any:
    """Return the rows of a column at these positions."""
    if isinstance(column, pa.Array) and column.type in _NUMBERS:
        column = numbers(column, _NUMBERS[column.type])  # whose rows are picked faster
    if isinstance(column, Values):
        valid = None if column.valid is None else column.valid[rows]
        return Values(picked(column.values, rows), valid)
    if isinstance(column, np.ndarray):
        return column[rows]
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        return column.take(pa.array(rows))
    return [column[row] for row in rows]

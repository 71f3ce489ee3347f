"""Comparison of the rows of a result with the expected ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ripple.model.schema.python_rows import python_rows

if TYPE_CHECKING:
    from collections.abc import Iterable

Row = Mapping[str, Any]


def rows_of(other: object) -> list[Row] | None:
    """Return the rows of a sequence of mappings, or of a table; None for anything else.

    A table is a frame of pandas or Polars, or any other with ``__arrow_c_stream__``; of pandas
    without its index, and with NaN as null, which pandas has no other form for.
    """
    if isinstance(other, Sequence) and not isinstance(other, (str, bytes)):
        return [*other] if all(isinstance(row, Mapping) for row in other) else None
    if type(other).__module__.partition(".")[0] == "pandas" and hasattr(other, "columns"):
        return [*python_rows(pa.Table.from_pandas(other, preserve_index=False))]
    if hasattr(other, "__arrow_c_stream__"):
        return [*python_rows(pa.table(other))]
    return None


def are_same(left: Iterable[Row], right: Iterable[Row]) -> bool:
    """Return whether rows are the same in the same order; so are two NaN."""
    return all(
        one.keys() == other.keys() and not differing(one, other)
        for one, other in zip(left, right, strict=True)
    )


def differing(left: Row, right: Row) -> list[str]:
    """Return the columns with differing values, or present on one side only."""
    names = [*left, *(name for name in right if name not in left)]
    return [
        name
        for name in names
        if name not in left or name not in right or not is_same(left[name], right[name])
    ]


def is_same(left: object, right: object) -> bool:
    """Return whether two values are equal, or both NaN."""
    return bool(left == right) or (is_nan(left) and is_nan(right))


def is_nan(value: object) -> bool:
    """Return whether this is NaN."""
    return isinstance(value, float) and value != value  # noqa: PLR0124 - the definition of NaN

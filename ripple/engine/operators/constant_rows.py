"""The rows of constants beside others: found by their keys, and taken as columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.model.expression.bound import Values, numbers
from ripple.model.expression.typed import Kind, kind_of
from ripple.model.pipeline.nodes import type_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from ripple.engine.kernels.columns import Columns
    from ripple.model.pipeline.constant import Constant

    Ints = npt.NDArray[np.int64]


def found_in(constant: Constant, columns: Columns, names: Sequence[str]) -> Ints:
    """Return the row of a constant for each row, by its fields, -1 for none: int64[n].

    names: of the fields, in the order of the constant's key. A null names nothing.
    """
    found = constant.find([columns.key(name) for name in names])
    for name in columns.nullable(names):
        valid = columns.valid(name)
        if valid is not None:
            found[~valid] = -1
    return found


def rows_at(constant: Constant, name: str, rows: Ints) -> Any:
    """Return a field of some rows of a constant as a column, null where the row is -1."""
    column, kind = constant.rows.column(name), kind_of(type_of(constant.fields[name]))[0]
    is_there = rows >= 0
    if kind is Kind.TEXT:
        return column.take(pa.array(rows, mask=~is_there))
    if not constant.rows.num_rows:
        return Values(np.zeros(len(rows), _DTYPES[kind]), is_there)
    held = numbers(column, kind)
    at = np.maximum(rows, 0)
    valid = is_there if held.valid is None else is_there & held.valid[at]
    return Values(held.values[at], None if valid.all() else valid)


_DTYPES = {Kind.FLOAT: np.float64, Kind.INT: np.int64, Kind.BOOL: np.bool_}

"""The rows of constants beside others: found by their keys, and taken as columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.model.expression.bound import Values

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
    is_there, held = rows >= 0, constant.column(name)
    if not isinstance(held, Values):
        return held.take(pa.array(rows, mask=~is_there))
    if not len(held.values):
        return Values(np.zeros(len(rows), held.values.dtype), is_there)
    at = np.maximum(rows, 0)
    valid = is_there if held.valid is None else is_there & held.valid[at]
    return Values(held.values[at], None if valid.all() else valid)

"""Texts of columns as others have them: what files of text have for times and decimals."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from ripple.model.schema.held import list_of, rule_of
from ripple.model.schema.types import DateTime, Decimal

_TIME = rule_of(DateTime())


def is_written(kind: pa.DataType) -> bool:
    """Tell whether values of a type of Arrow are, or have in them, times or decimals of ours."""
    if kinds.is_list(kind):
        return is_written(kind.value_type)
    if kinds.is_struct(kind):
        return any(is_written(field.type) for field in kind)
    return bool(kind == _TIME.arrow or kinds.is_decimal128(kind))


def written(column: pa.Array) -> pa.Array:
    """Return a column in which times and decimals are texts with all their digits.

    Arrow's own texts of small decimals have exponents, and Python's of times no nanoseconds.
    """
    kind = column.type
    if not is_written(kind):
        return column
    if kinds.is_list(kind):
        values = written(column.flatten())
        return list_of(column, values, pa.list_(kind.value_field.with_type(values.type)))
    if kinds.is_struct(kind):
        parts = [written(part) for part in column.flatten()]
        names = [field.with_type(part.type) for field, part in zip(kind, parts, strict=True)]
        null = column.is_null() if column.null_count else None
        return pa.StructArray.from_arrays(parts, fields=names, mask=null)
    if kinds.is_decimal128(kind):
        return rule_of(Decimal.wide(kind.scale)).texts(_units(column))
    return _TIME.texts(column.cast(pa.int64()))


def _units(column: pa.Array) -> pa.Array:
    """Return the units of decimals that fit in 64 bits: the lower half of each."""
    ends = 2 * column.offset, 2 * (column.offset + len(column))
    units = np.frombuffer(column.buffers()[1], np.int64)[ends[0] : ends[1] : 2]
    null = np.asarray(column.is_null()) if column.null_count else None
    return pa.array(units, mask=null)

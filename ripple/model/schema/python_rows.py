"""Rows as Python values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as kinds

from ripple.model.schema.logical.rule import rule_of
from ripple.model.schema.types import DateTime

if TYPE_CHECKING:
    from collections.abc import Iterator

_TIME = rule_of(DateTime())


def python_rows(rows: pa.RecordBatch | pa.Table) -> Iterator[dict[str, Any]]:
    """Yield rows as dicts. Times are ``datetime.datetime``, whether pandas is installed or not.

    Arrow's own ``to_pylist`` has pandas' type for nanoseconds, and fails without it.
    """
    names = rows.schema.names
    columns = [_values(column) for column in rows.columns]
    for values in zip(*columns, strict=True):
        yield dict(zip(names, values, strict=True))


def _values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    stored = _stored(column.type)
    if stored == column.type:
        listed: list[Any] = column.to_pylist()
        return listed
    return [_value(one, column.type) for one in column.cast(stored).to_pylist()]


def _stored(kind: pa.DataType) -> pa.DataType:
    """Return the type with integers for times in nanoseconds."""
    if kinds.is_timestamp(kind) and kind.unit == "ns":
        return pa.int64()
    if kinds.is_list(kind):
        return pa.list_(kind.value_field.with_type(_stored(kind.value_type)))
    if kinds.is_struct(kind):
        return pa.struct([field.with_type(_stored(field.type)) for field in kind])
    return kind


def _value(one: Any, kind: pa.DataType) -> Any:
    if one is None:
        return None
    if kinds.is_timestamp(kind):
        return _TIME.value(one) if kind.unit == "ns" else one
    if kinds.is_list(kind):
        return [_value(item, kind.value_type) for item in one]
    if kinds.is_struct(kind):
        return {field.name: _value(one[field.name], field.type) for field in kind}
    return one

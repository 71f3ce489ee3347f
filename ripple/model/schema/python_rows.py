"""Rows as Python values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as kinds

from ripple.model.schema.logical.rule import rule_of
from ripple.model.schema.logical.values import Reader, list_reader, read_all, record_reader
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
    each = _reader(column.type)
    return read_all(
        (column if each is None else column.cast(_stored(column.type))).to_pylist(), each
    )


def _stored(kind: pa.DataType) -> pa.DataType:
    """Return the type with integers for times in nanoseconds."""
    if _is_time(kind):
        return pa.int64()
    if kinds.is_list(kind):
        return pa.list_(kind.value_field.with_type(_stored(kind.value_type)))
    if kinds.is_struct(kind):
        return pa.struct([field.with_type(_stored(field.type)) for field in kind])
    return kind


def _reader(kind: pa.DataType) -> Reader | None:
    if _is_time(kind):
        return _TIME.value
    if kinds.is_list(kind):
        return list_reader(_reader(kind.value_type))
    if kinds.is_struct(kind):
        return record_reader({field.name: _reader(field.type) for field in kind})
    return dict if kinds.is_map(kind) else None


def _is_time(kind: pa.DataType) -> bool:
    return bool(kinds.is_timestamp(kind) and kind.unit == "ns")

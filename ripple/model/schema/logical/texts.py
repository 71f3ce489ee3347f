"""Columns of dates, times, decimals and bytes as texts, for files of text."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds

from ripple.model.schema.logical.binary import base64_texts
from ripple.model.schema.logical.columns import mapped, types_in
from ripple.model.schema.logical.rule import rule_of
from ripple.model.schema.logical.wide_decimals import halves_in
from ripple.model.schema.text_columns import text_column, valid_in
from ripple.model.schema.types import PRECISION_MAX, DateTime, Decimal

_TIME = rule_of(DateTime())


def is_written(kind: pa.DataType) -> bool:
    """Tell whether values of a type of Arrow are, or have in them, values with a text of ours."""
    if kinds.is_list(kind):
        return is_written(kind.value_type)
    if kinds.is_struct(kind):
        return any(is_written(field.type) for field in kind)
    if kinds.is_timestamp(kind):
        return kind.unit == "ns" and kind.tz is not None
    return bool(kinds.is_decimal128(kind) or kinds.is_date32(kind) or kinds.is_binary(kind))


def written(column: pa.Array, kind: pa.DataType | None = None) -> pa.Array:
    """Return a column in which dates, times, decimals and bytes are texts, with all digits.

    Arrow's own texts of small decimals have exponents, and Python's of times no nanoseconds. kind:
    its type.
    """
    kind = kind or column.type
    if not is_written(kind):
        return column
    if kinds.is_nested(kind):
        return mapped(column, written, types_in(kind), kind)
    if kinds.is_date32(kind):
        return column.cast(pa.string())
    if kinds.is_binary(kind):
        return base64_texts(column)
    if kinds.is_decimal128(kind) and kind.precision <= PRECISION_MAX:
        return rule_of(Decimal(kind.precision, kind.scale)).texts(_units(column))
    if kinds.is_decimal128(kind) and kind.scale >= 0:
        from ripple.model.schema import wide  # noqa: PLC0415 - few have such decimals

        return text_column(*wide.texts(halves_in(column), kind.scale), valid_in(column))
    return _TIME.texts(column.cast(pa.int64()))


def written_table(table: pa.Table, *, decimals: bool = True) -> pa.Table:
    """Return a table with each column as ``written`` returns it. decimals: also decimals."""
    for at, field in enumerate(table.schema):
        if is_written(field.type) and (decimals or not kinds.is_decimal(field.type)):
            chunks = [written(chunk) for chunk in table.column(at).chunks]
            kind = chunks[0].type if chunks else written(pa.array([], field.type)).type
            table = table.set_column(at, field.with_type(kind), pa.chunked_array(chunks, kind))
    return table


def _units(column: pa.Array) -> pa.Array:
    """Return the units of decimals that fit in 64 bits: the lower half of each."""
    null = np.asarray(column.is_null()) if column.null_count else None
    return pa.array(halves_in(column)[:, 0], mask=null)

"""Decimals of Avro: units of 10 ** -scale in bytes, the highest first, of two's complement."""

from __future__ import annotations

import decimal
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.connectors.formats.avro_types import bare_type
from ripple.connectors.formats.json import buffers_of
from ripple.model.schema.logical.rule import rule_of
from ripple.model.schema.logical.wide_decimals import units_in
from ripple.model.schema.text_columns import text_column, valid_in
from ripple.model.schema.types import PRECISION_MAX, Decimal, WideDecimal

if TYPE_CHECKING:
    from ripple.model.schema.document import Json

SCALE_MAX = 1000  # of other writers
_WORD_BYTES = 8


def scale_of(kind: Json) -> int | None:
    """Return the scale of a type of decimals, also in a union with null; None of another type."""
    bare = bare_type(kind)
    if not isinstance(bare, dict):
        return None
    scale = bare.get("scale", 0)
    is_decimal = bare.get("logicalType") == "decimal" and bare.get("type") in ("bytes", "fixed")
    is_scale = isinstance(scale, int) and 0 <= scale <= SCALE_MAX
    return scale if is_decimal and is_scale else None


def written(column: pa.Array, kind: Decimal | WideDecimal) -> pa.Array:
    """Return a stored column as bytes, in the type of texts."""
    if isinstance(kind, WideDecimal):
        halves = np.ascontiguousarray(units_in(column)[:, ::-1], ">i8").view(np.uint8)
        offsets = np.arange(len(column) + 1, dtype=np.int32) * np.int32(2 * _WORD_BYTES)
        return text_column(offsets, halves, valid_in(column))
    width = rule_of(kind).bounds[1].bit_length() // 8 + 1
    units = np.ascontiguousarray(column.fill_null(0), ">i8").view(np.uint8)
    data = np.ascontiguousarray(units.reshape(-1, _WORD_BYTES)[:, _WORD_BYTES - width :])
    offsets = np.arange(len(column) + 1, dtype=np.int32) * np.int32(width)
    return text_column(offsets, data, valid_in(column))


def text_of(value: Any, scale: int) -> Any:
    """Return the text of a decimal in bytes; other values unchanged."""
    if not isinstance(value, bytes):
        return value
    if scale <= PRECISION_MAX and len(value) <= _WORD_BYTES:
        return rule_of(Decimal.wide(scale)).written(int.from_bytes(value, "big", signed=True))
    digits = 3 * len(value)
    context = decimal.Context(prec=digits + scale, Emax=digits + scale, Emin=-digits - scale)
    units = decimal.Decimal(int.from_bytes(value, "big", signed=True))
    return format(units.scaleb(-scale, context), "f")


def texts(column: pa.Array, scale: int) -> pa.Array:
    """Return a column of bytes as texts of the decimals."""
    ends, data = buffers_of(column)
    lengths = np.diff(ends)
    if scale > PRECISION_MAX or (len(lengths) and lengths.max() > _WORD_BYTES):
        return pa.array([text_of(one, scale) for one in column.to_pylist()], pa.string())
    held = np.frombuffer(data, np.uint8)
    units = np.zeros(len(lengths), np.int64)
    for at in range(_WORD_BYTES):
        has = np.flatnonzero(lengths > at)
        byte = held[ends[:-1][has] + at].astype(np.int64)
        units[has] = byte.astype(np.int8) if at == 0 else units[has] << 8 | byte
    array = pa.array(units, mask=np.asarray(column.is_null()) if column.null_count else None)
    return rule_of(Decimal.wide(scale)).texts(array)

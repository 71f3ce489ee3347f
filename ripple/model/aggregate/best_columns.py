"""Conversion of columns to and from those of ``BestOf``: numbers, texts and truth values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import pyarrow as pa

from ripple.model.aggregate.contract import is_float
from ripple.model.schema.types import TEXTS, Bool, FieldType

if TYPE_CHECKING:
    import numpy.typing as npt

    from ripple.model.aggregate.contract import Column, Values

# Bits of numbers; starts and bytes of texts; a byte a value, 0 for null, or None if none is.
Strip: TypeAlias = tuple[Any, Any, Any, Any]

_ARROW = {"d": pa.float64(), "i": pa.int64(), "s": pa.large_string()}


def letter_of(of: FieldType) -> str:
    """Return the kind of a type in ``BestOf``: truth values are integers there."""
    return "d" if is_float(of) else "s" if isinstance(of, TEXTS) else "i"


def arrow_type(of: FieldType) -> pa.DataType:
    """Return the type of a dumped column."""
    return pa.bool_() if isinstance(of, Bool) else _ARROW[letter_of(of)]


def int64s(values: Values) -> npt.NDArray[np.int64]:
    """Return a column of integers without nulls as an array."""
    if isinstance(values, pa.Array):
        values = values.to_numpy(zero_copy_only=False)
    return np.ascontiguousarray(values, np.int64)


def strip(values: Values, of: FieldType) -> Strip:
    """Return a column for ``BestOf``; raises TypeError for another type."""
    if isinstance(values, list):
        values = pa.array(values, arrow_type(of))
    if isinstance(values, np.ndarray):
        if isinstance(of, TEXTS) or (values.dtype == np.float64) != is_float(of):
            raise TypeError(f"{values.dtype} in a column of another type")
        return _bits(values, of), None, None, None
    valid = None
    if values.null_count:
        valid = values.is_valid().to_numpy(zero_copy_only=False).view(np.uint8)
    if isinstance(of, TEXTS):
        return None, *_texts(values), valid
    if values.type != arrow_type(of):
        raise TypeError(f"{values.type} in a column of another type")
    if values.null_count == len(values):
        return np.zeros(len(values), np.int64), None, None, valid
    if valid is not None:
        values = values.fill_null(pa.scalar(0).cast(values.type))
    return _bits(values.to_numpy(zero_copy_only=False), of), None, None, valid


def _bits(values: npt.NDArray[Any], of: FieldType) -> npt.NDArray[np.int64]:
    kind = np.float64 if is_float(of) else np.int64
    return np.ascontiguousarray(values, kind).view(np.int64)


def _texts(values: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Return the offsets and the bytes of texts, without a copy."""
    if values.type not in (pa.string(), pa.large_string()):
        raise TypeError(f"{values.type} in a column of texts")
    starts = np.zeros(len(values) + 1, np.int64)
    _, offsets, data = values.buffers()
    if len(values):
        width = np.dtype(np.int64 if values.type == pa.large_string() else np.int32)
        starts[:] = np.frombuffer(offsets, width, len(starts), values.offset * width.itemsize)
    return starts, np.frombuffer(data or b"", np.uint8)


def arrow_of(column: Strip, of: FieldType) -> pa.Array:
    """Return a column of ``BestOf`` as an Arrow array, null where it has no value."""
    bits, starts, text, valid = column
    there = valid.view(np.bool_)
    if isinstance(of, TEXTS):
        mask = None if there.all() else pa.py_buffer(np.packbits(there, bitorder="little"))
        buffers = [mask, pa.py_buffer(starts), pa.py_buffer(text)]
        return pa.Array.from_buffers(pa.large_string(), len(valid), buffers)
    values = bits.view(np.float64) if is_float(of) else bits != 0 if isinstance(of, Bool) else bits
    return pa.array(values, mask=~there)


def spread(column: Strip, of: FieldType, held: npt.NDArray[np.bool_]) -> Column:
    """Return a result column; ``column`` has a value for each slot with a row.

    held: whether there is one, by slot; others are empty.
    """
    if isinstance(of, TEXTS):
        texts = arrow_of(column, of)
        if not held.all():
            texts = texts.take(pa.array(np.cumsum(held) - 1, mask=~held))
        return texts, texts.is_valid().to_numpy(zero_copy_only=False)
    bits, _, _, valid = column
    there = valid.view(np.bool_)
    found = np.where(there, bits, 0)
    if len(there) < len(held):
        bits, found = found, np.zeros(len(held), np.int64)
        found[held] = bits
        mask = held.copy()
        mask[held] = there
        there = mask
    if is_float(of):
        return found.view(np.float64), there
    return found != 0 if isinstance(of, Bool) else found, there

"""Columns of texts as compiled loops take them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import types as pt


def is_text(kind: pa.DataType) -> bool:
    """Tell whether a type of Arrow is one of its types of texts."""
    return bool(pt.is_string(kind) or pt.is_large_string(kind) or pt.is_string_view(kind))


def parts(array: Any) -> tuple[Any, Any, Any]:
    """Return the validity or None, the offsets and the bytes of a column of texts."""
    _, offsets, data = array.buffers()
    valid = valid_in(array)
    if offsets is None or not len(array):
        return valid, np.zeros(1, np.int32), np.zeros(0, np.uint8)
    places = np.frombuffer(offsets, np.int32)[array.offset : array.offset + len(array) + 1]
    return valid, places, np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)


def where_found(values: Any, found: Any, column: pa.Array) -> tuple[pa.Array, Any]:
    """Return numbers that were read from a column, and where it has a value that gave none.

    They are null there, and where the column is. found: bool[n].
    """
    if not column.null_count and found.all():
        return pa.array(values), ~found
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    return pa.array(values, mask=~(found & valid)), valid & ~found


def text_column(
    offsets: Any, data: Any, valid: Any = None, kind: pa.DataType | None = None
) -> pa.Array:
    """Return a column of texts that a loop has written. valid: uint8[n], 0 for null.

    kind: of bytes, if they are no texts.
    """
    buffers = [bits(valid), pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(kind or pa.string(), len(offsets) - 1, buffers)


def valid_in(column: pa.Array) -> Any:
    """Return a byte per value, 0 for a null; None without nulls."""
    if not column.null_count:
        return None
    return column.is_valid().to_numpy(zero_copy_only=False).view(np.uint8)


def bits(valid: Any) -> pa.Buffer | None:
    """Return ``valid_in`` with a bit per value, as Arrow has it."""
    return None if valid is None else pa.py_buffer(np.packbits(valid, bitorder="little"))

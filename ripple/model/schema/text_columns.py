"""Columns of texts as compiled loops take them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa


def parts(array: Any) -> tuple[Any, Any, Any]:
    """Return the validity or None, the offsets and the bytes of a column of texts."""
    _, offsets, data = array.buffers()
    valid = None
    if array.null_count:
        valid = array.is_valid().to_numpy(zero_copy_only=False).view(np.uint8)
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


def validity(column: pa.Array) -> pa.Buffer | None:
    """Return a bit per value, 0 for a null; None without nulls."""
    if not column.null_count:
        return None
    is_there = column.is_valid().to_numpy(zero_copy_only=False)
    return pa.py_buffer(np.packbits(is_there, bitorder="little"))

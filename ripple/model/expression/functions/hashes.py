"""The hash of a value: XXH64 of its bytes, which are the same on every machine."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np

from ripple.core.hashing import xxh64_of
from ripple.model.expression.functions.function import Function, table
from ripple.model.expression.functions.strings import hashed, hashed_values
from ripple.model.expression.typed import Kind
from ripple.model.schema.text_columns import parts


def _of_values(values: Any, seed: int) -> Any:
    if values.dtype == np.float64:
        values = values + 0.0  # -0.0 equals 0.0
        values[np.isnan(values)] = np.nan  # of one bit pattern
    low_first = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    return hashed_values(low_first.view(np.uint8).reshape(len(values), values.itemsize), seed)


def _signed(content: bytes, seed: int) -> int:
    return int.from_bytes(xxh64_of(content, seed).to_bytes(8, "little"), "little", signed=True)


def _plain_of_value(value: float | int | bool, seed: int) -> int:
    if isinstance(value, bool):
        return _signed(struct.pack("<?", value), seed)
    if isinstance(value, int):
        return _signed(struct.pack("<q", value), seed)
    return _signed(struct.pack("<d", math.nan if math.isnan(value) else value + 0.0), seed)


HASHES = table(
    Function(
        "hash.text", ((Kind.TEXT,),), Kind.INT,
        lambda text, seed: _signed(text.encode(), seed),
        columns=lambda array, seed: hashed(*parts(array), seed),
    ),
    Function(
        "hash.value", ((Kind.FLOAT, Kind.INT, Kind.BOOL),), Kind.INT, _plain_of_value,
        columns=_of_values,
    ),
)  # fmt: skip

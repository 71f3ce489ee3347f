"""Lists and maps in rows as record values: arrays and maps of Avro and of MessagePack."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ripple.connectors.kafka.row_writing import encode
from ripple.connectors.kafka.varint import zigzag
from ripple.model.schema.text_columns import parts, text_column, valid_in

if TYPE_CHECKING:
    from collections.abc import Sequence

_EMPTY = pa.scalar(b"", pa.binary())


def values_of(
    members: Sequence[pa.Array], lengths: np.ndarray, like: pa.Array, *, avro: bool
) -> pa.Array:
    """Return a value a row as binary, null where ``like`` is.

    members: the items of all lists; or the keys and the values of all maps. lengths: int64[n], how
    many of them each row has, 0 for null.
    """
    there = np.ones(len(members[0]), np.uint8)
    labels, unions = [b""] * len(members), [False] * len(members)
    one = encode([*members], labels, unions, b"", there, avro=avro)
    ends = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    bodies = pc.binary_join(pa.ListArray.from_arrays(ends, one), b"")
    kinds, which = np.unique(lengths, return_inverse=True)
    head = zigzag if avro else (map_head if len(members) > 1 else _list_head)
    heads = pa.array([head(int(length)) for length in kinds], pa.binary()).take(pa.array(which))
    # A block of no items is the end of an array, and of a map.
    tails = pa.array([b"\0" if avro and length else b"" for length in kinds], pa.binary())
    joined = pc.binary_join_element_wise(heads, bodies, tails.take(pa.array(which)), _EMPTY)
    valid = valid_in(like)
    if valid is None:
        return joined
    _, offsets, data = parts(joined)
    return text_column(offsets, data, valid, pa.binary())


def map_head(length: int) -> bytes:
    """Return the first bytes of a map of MessagePack."""
    return _head(length, 0x80, 0xDE)


def _list_head(length: int) -> bytes:
    return _head(length, 0x90, 0xDC)


def _head(length: int, small: int, tag: int) -> bytes:
    if length < 16:
        return bytes([small | length])
    if length < 1 << 16:
        return bytes([tag]) + length.to_bytes(2, "big")
    return bytes([tag + 1]) + length.to_bytes(4, "big")

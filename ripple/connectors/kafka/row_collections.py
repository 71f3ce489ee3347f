"""Lists and maps in rows as record values: arrays and maps of Avro and of MessagePack."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ripple.connectors.kafka.row_writing import encode
from ripple.model.schema.text_columns import bits, text_column, valid_in

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
    count = len(members[0])
    there = np.ones(count, np.uint8)
    labels, unions = [b""] * len(members), [False] * len(members)
    one = encode([*members], labels, unions, b"", there, avro=avro) if count else _none()
    ends = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
    bodies = pc.binary_join(pa.ListArray.from_arrays(ends, one), b"")
    kinds, which = np.unique(lengths, return_inverse=True)
    head = _avro_head if avro else (_map_head if len(members) > 1 else _list_head)
    heads = pa.array([head(int(length)) for length in kinds], pa.binary()).take(pa.array(which))
    # A block of no items is the end of an array, and of a map.
    tails = pa.array([b"\0" if avro and length else b"" for length in kinds], pa.binary())
    joined = pc.binary_join_element_wise(heads, bodies, tails.take(pa.array(which)), _EMPTY)
    valid = valid_in(like)
    if valid is None:
        return joined
    offsets = np.frombuffer(joined.buffers()[1], np.int32)[: len(joined) + 1]
    return pa.Array.from_buffers(
        pa.binary(), len(joined), [bits(valid), pa.py_buffer(offsets), joined.buffers()[2]]
    )


def _none() -> pa.Array:
    return text_column(np.zeros(1, np.int32), b"", None, pa.binary())


def _avro_head(length: int) -> bytes:
    left, found = length << 1, bytearray()
    while left >= 0x80:
        found.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*found, left])


def _list_head(length: int) -> bytes:
    if length < 16:
        return bytes([0x90 | length])
    return _sized(0xDC, length)


def _map_head(length: int) -> bytes:
    if length < 16:
        return bytes([0x80 | length])
    return _sized(0xDE, length)


def _sized(tag: int, length: int) -> bytes:
    if length < 1 << 16:
        return bytes([tag]) + length.to_bytes(2, "big")
    return bytes([tag + 1]) + length.to_bytes(4, "big")

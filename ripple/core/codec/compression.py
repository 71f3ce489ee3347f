"""Bounded compression of payloads: LZ4 or Zstandard after five bytes of our own.

A compressed payload is::

    offset  size  field
    0       1     algorithm: 1 = LZ4 block, 2 = Zstandard frame
    1       4     length of the payload before compression (uint32, little-endian)
    5       N     compressed bytes

The length is checked before a byte is decompressed or a buffer made: against the reader's limit,
and against the sizes in the compressed bytes themselves (:mod:`ripple.core.codec.lengths`). A
payload that claims to expand more than ``RATIO_MAX`` times is a bomb; such a one is never written
either, since :func:`compress` leaves payloads alone that do not fit the format or do not get
smaller.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import TYPE_CHECKING

import pyarrow as pa

from ripple.core.codec.errors import EncodingError
from ripple.core.codec.lengths import lz4_block_bytes, zstd_frame_bytes

if TYPE_CHECKING:
    from collections.abc import Collection

    from ripple.core.codec import Buffer

RATIO_MAX = 100
ZSTD_LEVEL = 1

_PREFIX = struct.Struct("<BI")


class Compression(IntEnum):
    """How a payload is compressed; the numbers are on the wire."""

    NONE = 0
    LZ4 = 1
    ZSTD = 2


_BYTES_HELD = {Compression.LZ4: lz4_block_bytes, Compression.ZSTD: zstd_frame_bytes}
_PIECE = {Compression.LZ4: "block", Compression.ZSTD: "frame that says its size"}


def compress(payload: Buffer, algorithm: Compression) -> bytes | None:
    """Return the compressed payload, or None when leaving it as it is does better."""
    if algorithm is Compression.NONE:
        return None
    body: bytes = _codec(algorithm).compress(payload, asbytes=True)
    packed = _PREFIX.size + len(body)
    if packed >= len(payload) or len(payload) > RATIO_MAX * len(body):
        return None
    return _PREFIX.pack(algorithm, len(payload)) + body


def decompress(
    packed: Buffer, *, agreed: Collection[Compression], length_bytes_max: int
) -> tuple[bytes, Compression]:
    """Return the payload and its algorithm; raises :class:`EncodingError`."""
    if len(packed) < _PREFIX.size:
        raise EncodingError(f"a compressed payload of {len(packed)} bytes has no prefix")
    code, length = _PREFIX.unpack_from(packed)
    if code not in agreed:
        raise EncodingError(f"compression {code} was not negotiated")
    body = memoryview(packed)[_PREFIX.size :]
    if length > length_bytes_max:
        raise EncodingError(
            f"a payload of {length} bytes after decompression; payload_bytes_max={length_bytes_max}"
        )
    if length > RATIO_MAX * len(body):
        raise EncodingError(
            f"{len(body)} bytes claim to hold {length}: a bomb, beyond RATIO_MAX={RATIO_MAX}"
        )
    algorithm = Compression(code)
    held = _BYTES_HELD[algorithm](body)
    if held < 0:
        raise EncodingError(f"malformed {algorithm.name}: not one whole {_PIECE[algorithm]}")
    if held != length:
        raise EncodingError(f"the {algorithm.name} bytes hold {held} bytes, not {length}")
    try:
        payload: bytes = _codec(algorithm).decompress(body, length, asbytes=True)
    except (OSError, pa.ArrowException) as error:
        raise EncodingError(f"malformed {algorithm.name}: {error}") from None
    return payload, algorithm


def _codec(algorithm: Compression) -> pa.Codec:
    if algorithm is Compression.LZ4:
        return pa.Codec("lz4_raw")
    return pa.Codec("zstd", compression_level=ZSTD_LEVEL)

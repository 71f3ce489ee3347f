"""Bounded compression of payloads: LZ4 or Zstandard behind five bytes of our own.

A compressed payload is::

    offset  size  field
    0       1     algorithm: 1 = LZ4 block, 2 = Zstandard frame
    1       4     length of the payload before compression (uint32, little-endian)
    5       N     compressed bytes

The length is checked before a byte is decompressed, and must then come out exactly. A payload
that claims to expand more than ``RATIO_MAX`` times is a bomb; such a one is never sent either,
since :func:`compress` leaves alone what does not fit the format or does not get smaller.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import TYPE_CHECKING

import lz4.block
import zstandard

from ripple.wire.errors import RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import Collection

    from ripple.wire.codec import Buffer

RATIO_MAX = 100

_PREFIX = struct.Struct("<BI")


class Compression(IntEnum):
    """How a payload is compressed; the numbers are on the wire."""

    NONE = 0
    LZ4 = 1
    ZSTD = 2


def compress(payload: Buffer, algorithm: Compression) -> bytes | None:
    """Return the compressed payload, or None when sending it as it is does better."""
    if algorithm is Compression.LZ4:
        body: bytes = lz4.block.compress(payload, store_size=False)
    elif algorithm is Compression.ZSTD:
        body = zstandard.ZstdCompressor(level=1, write_content_size=True).compress(payload)
    else:
        return None
    packed = _PREFIX.size + len(body)
    if packed >= len(payload) or len(payload) > RATIO_MAX * len(body):
        return None
    return _PREFIX.pack(algorithm, len(payload)) + body


def decompress(
    packed: Buffer, *, agreed: Collection[Compression], length_bytes_max: int
) -> tuple[bytes, Compression]:
    """Return the payload and its algorithm; raises :class:`RemoteProtocolError`."""
    if len(packed) < _PREFIX.size:
        raise RemoteProtocolError(f"a compressed payload of {len(packed)} bytes has no prefix")
    code, length = _PREFIX.unpack_from(packed)
    if code not in agreed:
        raise RemoteProtocolError(f"compression {code} was not agreed on")
    body = memoryview(packed)[_PREFIX.size :]
    if length > length_bytes_max:
        raise RemoteProtocolError(
            f"a payload of {length} bytes after decompression; payload_bytes_max={length_bytes_max}"
        )
    if length > RATIO_MAX * len(body):
        raise RemoteProtocolError(
            f"{len(body)} bytes claim to hold {length}: a bomb, beyond RATIO_MAX={RATIO_MAX}"
        )
    payload = _lz4(body, length) if code == Compression.LZ4 else _zstd(body, length)
    if len(payload) != length:
        raise RemoteProtocolError(f"decompressed to {len(payload)} bytes, not {length}")
    return payload, Compression(code)


def _lz4(body: memoryview, length: int) -> bytes:
    try:
        return bytes(lz4.block.decompress(body, uncompressed_size=length))
    except (lz4.block.LZ4BlockError, ValueError, OverflowError) as error:
        raise RemoteProtocolError(f"malformed LZ4: {error}") from None


def _zstd(body: memoryview, length: int) -> bytes:
    try:
        # The library believes the frame's own length over max_output_size, so look at it first.
        announced = zstandard.get_frame_parameters(body).content_size
        if announced != length:
            raise RemoteProtocolError(f"the Zstandard frame says {announced} bytes, not {length}")
        return zstandard.ZstdDecompressor().decompress(
            body, max_output_size=length, allow_extra_data=False
        )
    except zstandard.ZstdError as error:
        raise RemoteProtocolError(f"malformed Zstandard: {error}") from None

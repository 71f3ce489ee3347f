"""The four codecs of record batches, each bounded before and while it works."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

import pyarrow as pa

from ripple.connectors.kafka.errors import DamagedError, UnreadableError
from ripple.core.codec.lengths import zstd_frame_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

NAMES = ("none", "gzip", "snappy", "lz4", "zstd")
"""By number, as attributes of batches have them."""

_GZIP = 31  # of zlib: with a header
_XERIAL = b"\x82SNAPPY\x00"
_XERIAL_HEAD_BYTES = 16
_FIRST_GUESS = 8  # times smaller; the rest is read on


def decompressed(codec: int, body: memoryview, bytes_max: int) -> bytes | pa.Buffer:
    """Return the decompressed ``body``.

    Raises UnreadableError for invalid data, and for more than ``bytes_max``, of which no more
    are ever made.
    """
    try:
        return _BY_NUMBER[codec](body, bytes_max)
    except KeyError:
        said = f"codec {codec}, of which there is none"
        raise UnreadableError(said, "the batch has a codec that there is not") from None
    except UnreadableError:
        raise
    except (OSError, ValueError, pa.ArrowException, zlib.error, DamagedError) as error:
        name = NAMES[codec]
        reason = f"the batch is no sound {name}"
        raise UnreadableError(f"not sound {name}: {error}", reason) from error


def _gzip(body: memoryview, bytes_max: int) -> bytes:
    parts, left, rest = [], bytes_max, body
    while True:
        member = zlib.decompressobj(_GZIP)
        part = member.decompress(rest, left + 1)
        if len(part) > left:
            raise _bomb(bytes_max)
        if not member.eof:
            raise DamagedError("gzip that is cut short")
        parts.append(part)
        left -= len(part)
        if not member.unused_data:
            return parts[0] if len(parts) == 1 else b"".join(parts)
        rest = memoryview(member.unused_data)


def _snappy(body: memoryview, bytes_max: int) -> bytes | pa.Buffer:
    if bytes(body[: len(_XERIAL)]) != _XERIAL:
        return _raw_snappy(body, bytes_max, bytes_max)
    parts, left, at = [], bytes_max, _XERIAL_HEAD_BYTES
    while at < len(body):
        length = int.from_bytes(body[at : at + 4], "big")
        at += 4
        if not 0 < length <= len(body) - at:
            raise DamagedError("snappy that is cut short")
        part = _raw_snappy(body[at : at + length], left, bytes_max)
        left -= len(part)
        at += length
        parts.append(part)
    return b"".join(parts)


def _raw_snappy(body: memoryview, left: int, bytes_max: int) -> pa.Buffer:
    """Decompress a block after its decompressed length, a varint."""
    length = 0
    for place, byte in enumerate(bytes(body[:5])):
        length |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            break
    else:
        raise DamagedError("snappy without a length")
    if length > left:
        raise _bomb(bytes_max)
    return pa.decompress(body, decompressed_size=length, codec="snappy")


def _zstd(body: memoryview, bytes_max: int) -> bytes | pa.Buffer:
    held = zstd_frame_bytes(body)  # below zero where the frame does not say, or is not the only one
    if held < 0:
        return _stream("zstd", body, bytes_max)
    if held > bytes_max:
        raise _bomb(bytes_max)
    return pa.decompress(body, decompressed_size=held, codec="zstd")


def _lz4(body: memoryview, bytes_max: int) -> bytes:
    return _stream("lz4", body, bytes_max)


def _stream(codec: str, body: memoryview, bytes_max: int) -> bytes:
    with pa.CompressedInputStream(pa.BufferReader(body), codec) as stream:
        first: bytes = stream.read(min(_FIRST_GUESS * len(body), bytes_max) + 1)
        rest: bytes = stream.read(bytes_max + 1 - len(first)) if first else b""
    if len(first) + len(rest) > bytes_max:
        raise _bomb(bytes_max)
    return first + rest if rest else first


def _bomb(bytes_max: int) -> UnreadableError:
    said = f"more than {bytes_max} bytes after decompression: a bomb"
    return UnreadableError(said, f"the batch has {said}")


_BY_NUMBER: dict[int, Callable[[memoryview, int], bytes | pa.Buffer]] = {
    1: _gzip,
    2: _snappy,
    3: _lz4,
    4: _zstd,
}

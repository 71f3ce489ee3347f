"""Record batches (message format v2) as a producer sends them."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Literal, NamedTuple

import pyarrow as pa

from ripple.connectors.kafka.batch_writing import encoded
from ripple.connectors.kafka.headers import HeaderColumn
from ripple.connectors.kafka.varint import zigzag
from ripple.core.codec.crc import crc32c
from ripple.world.broker import TooLargeError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ripple.world.broker import Headers, Records, TopicPartition

Compression = Literal["none", "lz4", "zstd"]
COMPRESSIONS: tuple[Compression, ...] = ("none", "lz4", "zstd")

HEAD_BYTES = 61
_CODES = {"none": 0, "lz4": 3, "zstd": 4}
_TRANSACTIONAL = 16
_MAGIC = 2
_KEY_SHOWN = 100
# Blocks of up to 4 MiB without checksums: https://github.com/lz4/lz4/blob/dev/doc/lz4_Frame_format.md
_LZ4_HEAD = bytes.fromhex("04224d18607073")
_LZ4_BLOCK_BYTES = 4 << 20
_LZ4_AS_IT_IS = 1 << 31
# Attributes to count: what the checksum is of, but for the records.
_CHECKED = struct.Struct(">hiqqqhii")
_BEFORE = struct.Struct(">qiibI")


class ProducerId(NamedTuple):
    """A producer's identity for brokers."""

    number: int
    epoch: int


def batches(
    records: Records,
    place: TopicPartition,
    bytes_max: int,
    compression: Compression,
) -> Iterator[tuple[int, bytes, _Head]]:
    """Yield (how many records, their bytes, their head), each within ``bytes_max``.

    Raises TooLargeError naming the record that does not fit.
    """
    first, rows = 0, len(records)
    headers = None if records.headers is None else _header_column(records.headers)
    limit = bytes_max - HEAD_BYTES
    while first < rows:
        body, next_first = encoded(
            records.keys, records.values, records.timestamps_ms, headers, first, limit
        )
        if compression != "none":
            body = _lz4(body) if compression == "lz4" else _packed(body, compression)
        if len(body) > limit:
            raise _too_large(records, first, place, len(body) + HEAD_BYTES, bytes_max)
        times = records.timestamps_ms[first:next_first]
        count = next_first - first
        yield count, body, _Head(_CODES[compression], count, int(times[0]), int(times.max()))
        first = next_first


class _Head(NamedTuple):
    codec: int
    rows: int
    first_ms: int
    max_ms: int

    def with_body(
        self, body: bytes, who: ProducerId, sequence: int, *, is_transactional: bool = True
    ) -> bytes:
        """Return the whole batch."""
        attributes = self.codec | (_TRANSACTIONAL if is_transactional else 0)
        checked = _CHECKED.pack(
            attributes,
            self.rows - 1,
            self.first_ms,
            self.max_ms,
            who.number,
            who.epoch,
            sequence,
            self.rows,
        )
        crc = crc32c(body, crc32c(checked))
        length = HEAD_BYTES - 12 + len(body)
        return b"".join((_BEFORE.pack(0, length, -1, _MAGIC, crc), checked, body))


def _packed(data: bytes, codec: str) -> bytes:
    packed: bytes = pa.compress(data, codec=codec, asbytes=True)
    return packed


def _lz4(body: bytes) -> bytes:
    """Return an LZ4 frame of blocks that do not rest on each other: brokers take no others."""
    parts = [_LZ4_HEAD]
    for at in range(0, len(body), _LZ4_BLOCK_BYTES):
        block = body[at : at + _LZ4_BLOCK_BYTES]
        packed = _packed(block, "lz4_raw")
        if len(packed) < len(block):
            parts += [len(packed).to_bytes(4, "little"), packed]
        else:
            parts += [(len(block) | _LZ4_AS_IT_IS).to_bytes(4, "little"), block]
    return b"".join((*parts, b"\0\0\0\0"))


def _header_column(headers: Sequence[Headers]) -> pa.Array:
    """Return headers as records have them; few records have some."""
    if isinstance(headers, HeaderColumn):
        return headers.data
    return pa.array([_headers(one) for one in headers], pa.binary())


def _headers(headers: Headers) -> bytes:
    parts = [zigzag(len(headers))]
    for name, value in headers:
        data = name.encode()
        parts += [zigzag(len(data)), data, zigzag(len(value)), value]
    return b"".join(parts)


def _too_large(
    records: Records, at: int, place: TopicPartition, size: int, bytes_max: int
) -> TooLargeError:
    key = records.keys[at].as_py()
    shown = repr(key if key is None else key[:_KEY_SHOWN])
    shown += "" if key is None or len(key) <= _KEY_SHOWN else "..."
    return TooLargeError(
        f"the record with key {shown} takes {size} bytes, and topic {place.topic} takes up to "
        f"{bytes_max} in a batch: raise its max.message.bytes, or make the row smaller"
    )

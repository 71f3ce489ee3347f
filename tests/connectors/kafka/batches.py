"""Record batches written as Kafka's brokers hand them out, and read one record at a time."""

from __future__ import annotations

import gzip
import struct
from collections.abc import Iterable, Sequence

import lz4.frame
import pyarrow as pa
import zstandard
from aiokafka.record.memory_records import MemoryRecords

from ripple.core.codec.crc import crc32c
from ripple.world.broker import Record

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
CONTROL, TRANSACTIONAL, APPEND_TIME = 32, 16, 8


def varint(number: int) -> bytes:
    left = (number << 1) ^ (number >> 63)
    left &= (1 << 64) - 1
    made = bytearray()
    while left > 0x7F:
        made.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*made, left])


def sized(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def body_of(records: Iterable[tuple[int, Record]], first_time: int) -> bytes:
    """records: with the distance of their offset from the batch's."""
    made = b""
    for delta, record in records:
        headers = b"".join(sized(name.encode()) + sized(held) for name, held in record.headers)
        row = b"\0" + varint(record.timestamp_ms - first_time) + varint(delta)
        row += sized(record.key) + sized(record.value) + varint(len(record.headers)) + headers
        made += varint(len(row)) + row
    return made


def compressed(codec: int, body: bytes) -> bytes:
    return (
        lambda: body,
        lambda: gzip.compress(body),
        lambda: pa.compress(body, codec="snappy", asbytes=True),
        lambda: lz4.frame.compress(body, block_linked=False),
        lambda: zstandard.ZstdCompressor(write_content_size=False).compress(body),
    )[codec]()


def xerial(body: bytes, block_bytes: int = 32) -> bytes:
    blocks = [body[at : at + block_bytes] for at in range(0, len(body), block_bytes)]
    packed = [pa.compress(block, codec="snappy", asbytes=True) for block in blocks]
    head = b"\x82SNAPPY\0" + struct.pack(">ii", 1, 1)
    return head + b"".join(struct.pack(">i", len(one)) + one for one in packed)


def batch(
    base: int,
    records: Sequence[tuple[int, Record]],
    *,
    codec: int = 0,
    attributes: int = 0,
    producer: int = -1,
    last_delta: int | None = None,
    count: int | None = None,
    packed: bytes | None = None,
) -> bytes:
    """packed: the body, if not what ``records`` and the codec say."""
    times = [record.timestamp_ms for _, record in records] or [0]
    body = compressed(codec, body_of(records, times[0])) if packed is None else packed
    checked = struct.pack(
        ">hiqqqhii",
        attributes | codec,
        max((delta for delta, _ in records), default=0) if last_delta is None else last_delta,
        times[0],
        max(times),
        producer,
        0,
        -1,
        len(records) if count is None else count,
    )
    checked += body
    tail = struct.pack(">ibI", 0, 2, crc32c(checked)) + checked
    return struct.pack(">qi", base, len(tail)) + tail


def marker(base: int, producer: int, *, commits: bool) -> bytes:
    key = struct.pack(">hh", 0, int(commits))
    record = Record(key, struct.pack(">hi", 0, 0), 1)
    return batch(base, [(0, record)], attributes=CONTROL | TRANSACTIONAL, producer=producer)


def one_by_one(data: bytes, from_offset: int) -> list[tuple[int, Record]]:
    """Return what aiokafka reads there, one record after the other, without control records."""
    held = MemoryRecords(data)
    found = []
    while (read := held.next_batch()) is not None:
        assert read.validate_crc()
        found += [
            (one.offset, Record(one.key, one.value, one.timestamp, tuple(one.headers)))
            for one in read
            if one.offset >= from_offset and not read.is_control_batch
        ]
    return found

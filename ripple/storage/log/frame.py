"""One frame of a segment: the bytes of one append.

A frame is a header of 88 bytes, a body, and zeros up to a multiple of eight bytes::

    at  bytes  field (little-endian)
    0   4      magic "RLOG"
    4   1      format version, 1
    5   1      kind: 1 records, 2 marker, 3 lost
    6   1      compression: 0 none, 1 LZ4, 2 Zstandard
    7   1      0
    8   8      first offset
    16  4      records: how many offsets it takes, at least 1
    20  4      body length before compression
    24  4      body length as stored
    28  4      CRC-32C of the stored body and the zeros after it
    32  8      producer id, -1 for none
    40  8      sequence of the producer's append, from 0; of lost records the chain after them
    48  4      epoch of the producer
    52  4      partition
    56  8      smallest event time of the records, ns; of a marker its watermark
    64  8      largest event time of the records, ns; of a marker its watermark
    72  8      durable offset: the records below it had been synced when this frame was written
    80  4      CRC of the header before: a chain from the log's first frame on
    84  4      CRC-32C of the 84 bytes above

The header has a CRC of its own so that no unverified length is used. The chain ties each frame to
all before it: a moved, repeated or missing frame breaks it. The durable offset tells damage from a
torn tail: if an unreadable frame lies below the durable offset of a later one, its records were
damaged; otherwise they were never acknowledged.

The body of a records frame is one Arrow IPC stream (:mod:`ripple.core.codec.arrow`), compressed as
:mod:`ripple.core.codec.compression` says; a marker has none. Frames of *lost* records, without a
body, replace damaged frames that an operator gave up (:mod:`ripple.storage.log.repair`). The frame
after them continues one that no longer exists, so they hold its chain value.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple

from ripple.core.codec.compression import Compression, compress, decompress
from ripple.core.codec.crc import crc32c
from ripple.core.codec.errors import EncodingError

MAGIC = b"RLOG"
VERSION = 1
HEADER_BYTES = 88
NO_PRODUCER = -1
# The event time of records without one: beyond any valid time.
NO_TIME_NS = -(1 << 63)
TIME_NS_MAX = (1 << 63) - 1
OFFSET_END = 1 << 62

_HEADER = struct.Struct("<4sBBBBqIIIIqqiIqqqI")
_CRC = struct.Struct("<I")
_ZEROS = bytes(8)


class Kind(IntEnum):
    """The kind of a frame."""

    RECORDS = 1
    MARKER = 2
    LOST = 3


class FrameError(Exception):
    """Bytes are not a frame; the text says why. Never leaves the package."""


class ChainError(FrameError):
    """A valid frame does not continue the one before it."""


class Header(NamedTuple):
    """The fields of a header in order, without the magic and the constant ones."""

    kind: int
    compression: int
    first_offset: int
    record_count: int
    raw_length: int
    stored_length: int
    body_crc: int
    producer: int
    sequence: int
    epoch: int
    partition: int
    time_ns_min: int
    time_ns_max: int
    durable_offset: int
    chain: int
    crc: int

    @property
    def next_offset(self) -> int:
        """The offset after the frame's last one."""
        return self.first_offset + self.record_count

    @property
    def chain_behind(self) -> int:
        """The next frame's ``chain``."""
        return self.sequence if self.kind == Kind.LOST else self.crc

    @property
    def length(self) -> int:
        """The length of the whole frame, in bytes."""
        return HEADER_BYTES + _padded(self.stored_length)


class Draft(NamedTuple):
    """A frame about to be written: the parts that do not depend on its position."""

    kind: Kind
    record_count: int
    body: bytes
    compression: Compression
    raw_length: int
    time_ns_min: int
    time_ns_max: int
    producer: int = NO_PRODUCER
    epoch: int = 0
    sequence: int = 0

    @property
    def length(self) -> int:
        """The length of the whole frame, in bytes."""
        return HEADER_BYTES + _padded(len(self.body))


def draft_records(
    body: bytes | memoryview,
    record_count: int,
    compression: Compression,
    times_ns: tuple[int, int],
) -> Draft:
    """Compress a body if that makes it smaller; ``times_ns``: the smallest and the largest."""
    packed = compress(body, compression)
    if packed is None:
        return Draft(
            Kind.RECORDS, record_count, bytes(body), Compression.NONE, len(body), *times_ns
        )
    return Draft(Kind.RECORDS, record_count, packed, compression, len(body), *times_ns)


def draft_marker(watermark_ns: int) -> Draft:
    """Return a marker: the promise that no event below ``watermark_ns`` follows."""
    return Draft(Kind.MARKER, 1, b"", Compression.NONE, 0, watermark_ns, watermark_ns)


def dumps(
    draft: Draft, *, first_offset: int, partition: int, durable_offset: int, chain: int
) -> bytes:
    """Return the frame's bytes; ``chain`` is the CRC of the header before."""
    pad = _ZEROS[: _padded(len(draft.body)) - len(draft.body)]
    header = _HEADER.pack(
        MAGIC,
        VERSION,
        draft.kind,
        draft.compression,
        0,
        first_offset,
        draft.record_count,
        draft.raw_length,
        len(draft.body),
        crc32c(pad, crc32c(draft.body)),
        draft.producer,
        draft.sequence,
        draft.epoch,
        partition,
        draft.time_ns_min,
        draft.time_ns_max,
        durable_offset,
        chain,
    )
    return b"".join((header, _CRC.pack(crc32c(header)), draft.body, pad))


def read_header(data: bytes | memoryview, at: int = 0) -> Header:
    """Return the header at ``at``; raises FrameError if it is missing or incomplete."""
    if len(data) - at < HEADER_BYTES:
        raise FrameError(f"{len(data) - at} bytes are less than a header of {HEADER_BYTES}")
    view = memoryview(data)[at : at + HEADER_BYTES]
    magic, version, kind, compression, zero, *fields = _HEADER.unpack_from(view)
    (crc,) = _CRC.unpack_from(view, _HEADER.size)
    if magic != MAGIC:
        raise FrameError(f"a frame begins with {MAGIC!r}, not {magic!r}")
    if crc32c(view[: _HEADER.size]) != crc:
        raise FrameError("the header's checksum does not match")
    if version != VERSION:
        raise FrameError(f"the frame has format version {version}; this release reads {VERSION}")
    header = Header._make((kind, compression, *fields, crc))
    if zero or not _is_sound(header):
        raise FrameError(f"the header has an impossible combination of fields: {header}")
    return header


def check_body(header: Header, data: bytes | memoryview, at: int = 0) -> None:
    """Check the body of the frame at ``at``; raises FrameError if it is truncated or changed."""
    end = at + header.length
    if len(data) < end:
        raise FrameError(f"{len(data) - at} of the frame's {header.length} bytes are there")
    if crc32c(memoryview(data)[at + HEADER_BYTES : end]) != header.body_crc:
        raise FrameError("the body's checksum does not match")


def body_of(header: Header, data: bytes | memoryview, at: int = 0) -> memoryview:
    """Return the body of a checked frame, decompressed; raises FrameError if that fails."""
    start = at + HEADER_BYTES
    stored = memoryview(data)[start : start + header.stored_length]
    if header.compression == Compression.NONE:
        return stored
    try:
        body, _ = decompress(
            stored,
            agreed=(Compression(header.compression),),
            length_bytes_max=header.raw_length,
        )
    except EncodingError as error:
        raise FrameError(str(error)) from error
    if len(body) != header.raw_length:
        raise FrameError(f"the body has {len(body)} bytes decompressed, not {header.raw_length}")
    return memoryview(body)


def _is_sound(header: Header) -> bool:
    is_records = header.kind == Kind.RECORDS
    return (
        header.stored_length <= header.raw_length
        and (is_records or (header.kind in (Kind.MARKER, Kind.LOST) and header.raw_length == 0))
        and (header.compression != Compression.NONE or header.raw_length == header.stored_length)
        and header.compression in (Compression.NONE, Compression.LZ4, Compression.ZSTD)
        and (header.kind != Kind.MARKER or header.record_count == 1)
        and header.record_count >= 1
        and 0 <= header.first_offset < header.next_offset <= OFFSET_END
        and header.durable_offset <= header.first_offset
        and header.time_ns_min <= header.time_ns_max
    )


def _padded(length: int) -> int:
    return (length + 7) & ~7

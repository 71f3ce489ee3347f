"""A segment's sparse index: positions by offset and time, and the producers.

It is written when a segment is sealed or its writer closed, and now and then before, as far as the
segment is durable; readers continue it from there. It is never trusted over the data: a missing,
damaged or wrong index is rebuilt from the frames' headers. It also holds the durable length, so
that a shorter segment is known to have lost records. Layout, little-endian: the fields of _HEAD,
the entries as three int64 each, the producers, and a CRC-32C of all these.
"""

from __future__ import annotations

import struct
from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, Self

from ripple.core.codec.crc import crc32c
from ripple.storage.log.files import hint_in
from ripple.storage.log.frame import NO_TIME_NS, Header, Kind
from ripple.storage.log.producers import Producers, Stored
from ripple.storage.log.segment import FramePosition, index_path
from ripple.world import replacing

if TYPE_CHECKING:
    from ripple.world.ports import Disk

MAGIC = b"RLIX"
VERSION = 1
INDEX_BYTES_MAX = 1 << 26

_HEAD = struct.Struct("<4sB3xIIqqqqqI")
_ENTRY = struct.Struct("<qqq")
_PRODUCER = struct.Struct("<qiI")
_STORED = struct.Struct("<qqq")
_CRC = struct.Struct("<I")


class Entry(NamedTuple):
    """A frame's first offset and position, and the largest event time of the records before it."""

    offset: int
    position: int
    time_ns_before: int


@dataclass(slots=True)
class Index:
    """Invariants: entries ascend in all three members, the first one is the segment's first frame.

    ``place`` is the end of the indexed part, ``time_ns_max`` the largest event time in it (or
    NO_TIME_NS), ``sealed_ns`` the clock's time when it was written, 0 if it never was.
    ``time_ns_first`` is the first frame's event time; neither it nor ``epoch``, the segment's, is
    in the file.
    """

    first_offset: int
    place: FramePosition
    interval_bytes: int
    time_ns_max: int = NO_TIME_NS
    sealed_ns: int = 0
    time_ns_first: int = NO_TIME_NS
    entries: list[Entry] = field(default_factory=list)
    epoch: int = 0

    def add(self, header: Header) -> None:
        """Index the frame at ``place``."""
        position = self.place.position
        if not self.entries or position - self.entries[-1].position >= self.interval_bytes:
            self.entries.append(Entry(header.first_offset, position, self.time_ns_max))
        if header.kind == Kind.RECORDS:
            self.time_ns_max = max(self.time_ns_max, header.time_ns_max)
            if self.time_ns_first == NO_TIME_NS:
                self.time_ns_first = header.time_ns_min
        self.place = self.place.after(header)

    def copy(self) -> Self:
        """Return an independent copy."""
        return replace(self, entries=list(self.entries))

    def before_offset(self, offset: int) -> FramePosition:
        """Return the position of a frame at or before ``offset``."""
        at = bisect_right(self.entries, offset, key=lambda entry: entry.offset)
        return self._place(at)

    def before_time(self, time_ns: int) -> FramePosition:
        """Return the position of a frame before which all records are earlier than ``time_ns``."""
        at = bisect_left(self.entries, time_ns, key=lambda entry: entry.time_ns_before)
        return self._place(at)

    def _place(self, after: int) -> FramePosition:
        if after == 0:
            return FramePosition(0, self.first_offset, None)
        entry = self.entries[after - 1]
        return FramePosition(entry.position, entry.offset, None)


def dumps(index: Index, producers: Producers) -> bytes:
    """Return the index file's bytes."""
    position, offset, chain = index.place
    parts = [
        _HEAD.pack(
            MAGIC,
            VERSION,
            len(index.entries),
            len(producers),
            index.first_offset,
            offset,
            position,
            index.time_ns_max,
            index.sealed_ns,
            chain or 0,
        )
    ]
    parts += [_ENTRY.pack(*entry) for entry in index.entries]
    for producer, epoch, appends in producers.items():
        parts.append(_PRODUCER.pack(producer, epoch, len(appends)))
        parts += [_STORED.pack(*stored) for stored in appends]
    data = b"".join(parts)
    return data + _CRC.pack(crc32c(data))


def loads(data: bytes, interval_bytes: int, producers: Producers | None) -> Index | None:
    """Return a valid index, None for anything else; fill ``producers`` if given."""
    if not _is_sound(data):
        return None
    _, _, entry_count, producer_count, first, *rest = _HEAD.unpack_from(data)
    next_offset, size, time_ns_max, sealed_ns, chain = rest
    at = _HEAD.size + entry_count * _ENTRY.size
    entries = [Entry(*found) for found in _ENTRY.iter_unpack(data[_HEAD.size : at])]
    for _ in range(producer_count if producers is not None else 0):
        producer, epoch, count = _PRODUCER.unpack_from(data, at)
        at += _PRODUCER.size
        stored = data[at : at + count * _STORED.size]
        assert producers is not None
        producers.restore(producer, epoch, [Stored(*one) for one in _STORED.iter_unpack(stored)])
        at += count * _STORED.size
    place = FramePosition(size, next_offset, chain)
    return Index(first, place, interval_bytes, time_ns_max, sealed_ns, entries=entries)


def read(
    disk: Disk,
    folder: str,
    first_offset: int,
    interval_bytes: int,
    producers: Producers | None = None,
    *,
    epoch: int = 0,
) -> Index | None:
    """Return a segment's index file if it is valid, and fill ``producers`` if given."""
    data = hint_in(disk, index_path(folder, first_offset, epoch), length_max=INDEX_BYTES_MAX)
    if data is None:
        return None
    index = loads(data, interval_bytes, producers)
    if index is None or index.first_offset != first_offset:
        return None
    index.epoch = epoch
    return index


def end_of(disk: Disk, folder: str, first_offset: int, epoch: int = 0) -> int:
    """Return the end of a segment by its index, 0 without a valid one."""
    data = hint_in(disk, index_path(folder, first_offset, epoch), length_max=INDEX_BYTES_MAX)
    if data is None or not _is_sound(data):
        return 0
    _, _, _, _, first, next_offset, *_ = _HEAD.unpack_from(data)
    return int(next_offset) if first == first_offset else 0


def write(disk: Disk, folder: str, index: Index, producers: Producers) -> None:
    """Write a segment's index file atomically; raises OSError."""
    replacing.replace(
        disk, index_path(folder, index.first_offset, index.epoch), dumps(index, producers)
    )


def _is_sound(data: bytes) -> bool:
    end = len(data) - _CRC.size
    if end < _HEAD.size or _CRC.unpack_from(data, end) != (crc32c(data[:end]),):
        return False
    magic, version, *_ = _HEAD.unpack_from(data)
    return (magic, version) == (MAGIC, VERSION)

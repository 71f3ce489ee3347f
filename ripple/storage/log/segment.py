"""Segments: their names, and sequential reading of their frames."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from ripple.storage.log.frame import (
    HEADER_BYTES,
    ChainError,
    FrameError,
    Header,
    check_body,
    read_header,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ripple.world.ports import File

READ_BYTES = 1 << 20
DIGITS = 20
SEGMENT_SUFFIX = ".log"
INDEX_SUFFIX = ".index"

_STEM = re.compile(r"([0-9]{20})(?:-([0-9]{10}))?")


class Segment(NamedTuple):
    """An existing segment: its first offset, and the epoch of its owner.

    end: the offset at which a seal ends it, if any; bytes after it in the file are ignored.
    """

    first_offset: int
    epoch: int = 0
    end: int | None = None

    def path(self, folder: str) -> str:
        """Return the segment's path."""
        return segment_path(folder, self.first_offset, self.epoch)


def segment_path(folder: str, first_offset: int, epoch: int = 0) -> str:
    """Return the path of the segment that begins with ``first_offset``."""
    return f"{folder}/{_stem(first_offset, epoch)}{SEGMENT_SUFFIX}"


def index_path(folder: str, first_offset: int, epoch: int = 0) -> str:
    """Return the path of that segment's index."""
    return f"{folder}/{_stem(first_offset, epoch)}{INDEX_SUFFIX}"


def segments_in(names: Iterable[str], suffix: str) -> list[Segment]:
    """Return the segments with a file of this suffix, of any epoch."""
    stems = [name.removesuffix(suffix) for name in names if name.endswith(suffix)]
    found = [_STEM.fullmatch(stem) for stem in stems]
    return [Segment(int(one[1]), int(one[2] or 0)) for one in found if one is not None]


def _stem(first_offset: int, epoch: int) -> str:
    return f"{first_offset:0{DIGITS}}-{epoch:010}" if epoch else f"{first_offset:0{DIGITS}}"


class FramePosition(NamedTuple):
    """The beginning of a frame: the values that it must have to be the next one.

    ``chain`` is None where reading began in the middle: the first frame's is then accepted.
    """

    position: int
    offset: int
    chain: int | None

    def after(self, header: Header) -> FramePosition:
        """Return the position after the frame here."""
        return FramePosition(self.position + header.length, header.next_offset, header.chain_behind)


class Frame(NamedTuple):
    """A checked frame: its header, and its position within the bytes read."""

    header: Header
    data: bytes
    at: int


class Frames:
    """Reads one segment's frames in order, with read-ahead, and checks every field.

    ``place`` is that of the next frame. ``next`` returns None at the end, or at an incomplete frame
    (``rest`` is the number of its bytes). It raises FrameError for bytes that are not the next
    frame; the place then stays. ``end``: the offset at which reading stops, None for no limit.
    """

    def __init__(
        self,
        file: File,
        partition: int,
        place: FramePosition,
        raw_bytes_max: int,
        read_bytes: int = READ_BYTES,
        *,
        end: int | None = None,
    ) -> None:
        self.place = place
        self.rest = 0
        self.end = end
        self._file = file
        self._partition = partition
        self._raw_bytes_max = raw_bytes_max
        self._read_bytes = read_bytes
        self._data = b""
        self._start = place.position

    def next(self) -> Frame | None:
        """Return the next frame, header and body checked."""
        header = self._header()
        if header is None:
            return None
        read = self._data
        at = self._fill(header.length)
        if self._data is not read:
            # The header is from an earlier read: a writer may have truncated and appended since.
            header = self._header()
            if header is None:
                return None
        if len(self._data) - at < header.length:
            self.rest = len(self._data) - at
            return None
        check_body(header, self._data, at)
        self.place = self.place.after(header)
        return Frame(header, self._data, at)

    def next_header(self) -> Header | None:
        """Return the next frame's header and skip its body unread, if it is complete."""
        header = self._header()
        if header is None:
            return None
        after = self.place.after(header)
        if after.position > self._start + len(self._data):
            size = self._file.size()
            if after.position > size:
                self.rest = size - self.place.position
                return None
        self.place = after
        return header

    @property
    def read_to(self) -> int:
        """The position up to which the file has been read."""
        return self._start + len(self._data)

    def forget(self) -> None:
        """Discard the read-ahead."""
        self._data = b""

    def _header(self) -> Header | None:
        if self.place.offset == self.end:
            self.rest = 0
            return None
        at = self._fill(HEADER_BYTES)
        self.rest = len(self._data) - at
        if self.rest < HEADER_BYTES:
            return None
        header = read_header(self._data, at)
        _, offset, chain = self.place
        if header.partition != self._partition:
            raise FrameError(f"the frame is of partition {header.partition}, not this one")
        if header.first_offset != offset:
            raise FrameError(f"the frame begins with offset {header.first_offset}, not {offset}")
        if chain is not None and header.chain != chain:
            raise ChainError("the frame does not continue the one before it")
        if self.end is not None and header.next_offset > self.end:
            raise FrameError(f"the frame exceeds offset {self.end}, where a seal ends the segment")
        if header.raw_length > self._raw_bytes_max:
            raise FrameError(
                f"the frame's body has {header.raw_length} bytes, more than batch_bytes_max, "
                f"{self._raw_bytes_max}"
            )
        return header

    def _fill(self, length: int) -> int:
        """Buffer ``length`` bytes from the place on, if they exist; return their position."""
        position = self.place.position
        at = position - self._start
        if not 0 <= at <= len(self._data) - length:
            self._data = self._file.read(position, max(length, self._read_bytes))
            self._start = position
            return 0
        return at

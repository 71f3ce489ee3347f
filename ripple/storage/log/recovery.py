"""Recovery of a partition from its files, before it is written again, or to verify it.

A sealed segment must be complete. The last one may end in the remains of unacknowledged appends,
which are cut off and reported. Missing records below the durable offset are damage, and nothing is
touched.
"""

from __future__ import annotations

from contextlib import closing
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from ripple.storage.log import index as index_file
from ripple.storage.log.durable import durable_offset
from ripple.storage.log.epochs import segments
from ripple.storage.log.errors import LogDamagedError
from ripple.storage.log.files import open_segment
from ripple.storage.log.frame import (
    HEADER_BYTES,
    MAGIC,
    FrameError,
    Header,
    check_body,
    read_header,
)
from ripple.storage.log.index import Index
from ripple.storage.log.producers import Producers
from ripple.storage.log.segment import (
    READ_BYTES,
    Frame,
    FramePosition,
    Frames,
    Segment,
    segment_path,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ripple.storage.log.topic import Topic
    from ripple.world.ports import File


class TornTail(NamedTuple):
    """The bytes cut off at the end: position, length, and reason.

    ``frames`` counts complete frames after the fault, which were never synced either.
    """

    file: str
    position: int
    offset: int
    length: int
    frames: int
    reason: str


class Found(NamedTuple):
    """The content of a partition: sealed segments, the last one, and its torn tail.

    ``rebuilt``: the sealed segments with unusable index files, and the producers as of their ends.
    """

    sealed: list[Index]
    active: Index
    producers: Producers
    tail: TornTail | None
    rebuilt: list[tuple[Index, Producers]]


def chain_at(first_offset: int) -> int | None:
    """Return the chain value of the first segment's first frame, None if unknown."""
    return 0 if first_offset == 0 else None


def check_present(
    topic: Topic, partition: int, present: list[Segment], durable_offset: int
) -> None:
    """Raise LogDamagedError when the first segments are missing, or all."""
    folder = topic.folder(partition)
    if present and present[0].first_offset > 0 and not topic.settings.has_retention:
        why = f"it is missing, and the records below {present[0].first_offset} with it"
        raise LogDamagedError(segment_path(folder, 0), 0, 0, why)
    if not present and durable_offset > 0:
        why = f"it is missing, but records up to {durable_offset} were durable"
        raise LogDamagedError(segment_path(folder, 0), 0, 0, why)
    if present and present[-1].end is not None:
        why = "a seal says that another segment follows it, which is missing"
        raise LogDamagedError(present[-1].path(folder), 0, present[-1].end, why)


def short_of(
    durable_offset: int, path: str, end: FramePosition, reason: str = ""
) -> LogDamagedError:
    """Return the error for a log that ends before its durable offset. reason: how it ends."""
    why = f"{reason or 'the log ends there'}, but records up to {durable_offset} were durable"
    return LogDamagedError(path, end.position, end.offset, why)


def inspect(
    topic: Topic, partition: int, check: Callable[[Frame], None] | None = None
) -> Found | None:
    """Return the content of the partition, None if there is no segment; changes nothing.

    Every frame of the last segment is checked; of a sealed one its index against its length, or
    every frame if the index is unusable. ``check`` is called with every frame of all segments, and
    its FrameError is damage too. Raises LogDamagedError.
    """
    folder = topic.folder(partition)
    # Before anything else: a writer may be active.
    known_offset = durable_offset(topic, partition)
    present = segments(topic.disk, folder)
    check_present(topic, partition, present, known_offset)
    if not present:
        return None
    inspection = _Inspection(topic, partition, check)
    sealed = []
    rebuilt = []
    chain = chain_at(present[0].first_offset)
    for segment, following in pairwise(present):
        known = None if check is not None else inspection.known(segment, following.first_offset)
        sealed.append(known or inspection.sealed(segment, following.first_offset, chain))
        if known is None:
            rebuilt.append((sealed[-1], inspection.producers.copy()))
        chain = sealed[-1].place.chain
    active, cut = inspection.last(present[-1], chain, known_offset)
    return Found(sealed, active, inspection.producers, cut, rebuilt)


class _Inspection:
    """Reads the segments in order, and collects the producers."""

    def __init__(self, topic: Topic, partition: int, check: Callable[[Frame], None] | None) -> None:
        self.producers = Producers(topic.settings.producers_max)
        self._disk = topic.disk
        self._folder = topic.folder(partition)
        self._partition = partition
        self._settings = topic.settings
        self._check = check

    def known(self, segment: Segment, following: int) -> Index | None:
        """Return a sealed segment's index file if it agrees with the file and the next segment."""
        index, producers = self._read(segment)
        if index is None or index.place.offset != following:
            return None
        size = self._size(segment)
        # A replaced owner may have written after its end.
        if size < index.place.position or (segment.end is None and size > index.place.position):
            return None
        self.producers = producers
        return index

    def sealed(self, segment: Segment, following: int, chain: int | None) -> Index:
        """Check every frame of a sealed segment."""
        path = segment.path(self._folder)
        index, reason, size = self._scan(segment, chain)
        position, offset, _ = index.place
        if position < size and (segment.end is None or offset < segment.end):
            raise LogDamagedError(path, position, offset, reason)
        if offset != following:
            raise LogDamagedError(
                path, position, offset, f"it ends there, but the next segment is {following}"
            )
        return index

    def last(
        self, segment: Segment, chain: int | None, known_offset: int
    ) -> tuple[Index, TornTail | None]:
        """Check every frame of the last segment; distinguish damage from a torn tail."""
        path = segment.path(self._folder)
        index, reason, size = self._scan(segment, chain)
        position, offset, _ = index.place
        later: list[Header] = []
        if position < size:
            with closing(open_segment(self._disk, self._folder, segment)) as file:
                later = [header for _, header in frames_behind(file, position, size)]
        durable_offset = max([known_offset, *(header.durable_offset for header in later)])
        if durable_offset > offset:
            raise short_of(durable_offset, path, index.place, reason)
        if position == size:
            return index, None
        return index, TornTail(path, position, offset, size - position, len(later), reason)

    def _scan(self, segment: Segment, chain: int | None) -> tuple[Index, str, int]:
        place = FramePosition(0, segment.first_offset, chain)
        interval_bytes = self._settings.index_interval_bytes
        index = Index(segment.first_offset, place, interval_bytes, epoch=segment.epoch)
        with closing(open_segment(self._disk, self._folder, segment)) as file:
            raw_bytes_max = self._settings.batch_bytes_max
            frames = Frames(file, self._partition, place, raw_bytes_max, end=segment.end)
            reason = self._read_frames(frames, index)
            return index, reason, file.size()

    def _read_frames(self, frames: Frames, index: Index) -> str:
        """Index frames up to the end or the first invalid one; return the fault there, or ""."""
        try:
            while (frame := frames.next()) is not None:
                if self._check is not None:
                    self._check(frame)
                index.add(frame.header)
                self.producers.note(frame.header)
        except FrameError as error:
            return str(error)
        return f"only {frames.rest} bytes of a frame are there" if frames.rest else ""

    def _read(self, segment: Segment) -> tuple[Index | None, Producers]:
        producers = Producers(self._settings.producers_max)
        interval_bytes = self._settings.index_interval_bytes
        index = index_file.read(
            self._disk,
            self._folder,
            segment.first_offset,
            interval_bytes,
            producers,
            epoch=segment.epoch,
        )
        return index, producers

    def _size(self, segment: Segment) -> int:
        with closing(open_segment(self._disk, self._folder, segment)) as file:
            return file.size()


def frames_behind(file: File, position: int, size: int) -> Iterator[tuple[int, Header]]:
    """Yield (position, header) of complete frames anywhere after ``position``."""
    at = position + 1
    while at < size:
        data = file.read(at, READ_BYTES + len(MAGIC) - 1)
        found = data.find(MAGIC)
        while found >= 0:
            header = whole_frame(file, at + found, size)
            if header is not None:
                yield at + found, header
            found = data.find(MAGIC, found + 1)
        if not data:
            return
        at += READ_BYTES


def whole_frame(file: File, position: int, size: int) -> Header | None:
    """Return the header of the frame at ``position``, None if it is invalid."""
    if position % 8:
        return None
    try:
        header = read_header(file.read(position, HEADER_BYTES))
        if position + header.length > size:
            return None
        check_body(header, file.read(position, header.length))
    except FrameError:
        return None
    return header

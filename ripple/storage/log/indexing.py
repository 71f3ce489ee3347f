"""Up-to-date indexes of any segment, for readers."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from ripple.storage.log import index as index_file
from ripple.storage.log.frame import FrameError
from ripple.storage.log.index import Index
from ripple.storage.log.recovery import chain_at
from ripple.storage.log.segment import FramePosition, Frames, Segment

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.storage.log.topic import Topic
    from ripple.world.ports import File

HEADERS_READ_BYTES = 1 << 14


class Indexes:
    """The indexes of one partition's segments: their files, continued or built from headers.

    That of the last segment is cached, and continued at the next call.
    """

    def __init__(self, topic: Topic, partition: int) -> None:
        self._disk = topic.disk
        self._folder = topic.folder(partition)
        self._partition = partition
        self._settings = topic.settings
        self._last: Index | None = None

    def of(
        self, segment: Segment, following: int | None, open_to_read: Callable[[Segment], File]
    ) -> Index:
        """Return a segment's index. following: the next one's first offset, None for the last."""
        if following is None:
            return self._of_last(segment, open_to_read)
        found = self._read(segment)
        if found is None or found.place.offset != following:
            found = self._begun(segment)
            with closing(open_to_read(segment)) as file:
                self._continue(found, file, segment.end)
        return found

    def _of_last(self, segment: Segment, open_to_read: Callable[[Segment], File]) -> Index:
        with closing(open_to_read(segment)) as file:
            last = self._last
            if last is not None and (last.first_offset, last.epoch) == segment[:2]:
                found = last.copy()
                self._last = self._continue(found, file, segment.end)
                if self._last is not None:
                    return found
            read = self._read(segment)
            found = self._begun(segment)
            if read is not None and read.place.position <= file.size():
                found = read
            self._last = self._continue(found, file, segment.end)
            return found

    def _read(self, segment: Segment) -> Index | None:
        interval_bytes = self._settings.index_interval_bytes
        first, epoch, _ = segment
        return index_file.read(self._disk, self._folder, first, interval_bytes, epoch=epoch)

    def _begun(self, segment: Segment) -> Index:
        first, epoch, _ = segment
        begin = FramePosition(0, first, chain_at(first))
        return Index(first, begin, self._settings.index_interval_bytes, epoch=epoch)

    def _continue(self, index: Index, file: File, end: int | None) -> Index | None:
        """Index the new frames; return the index without the last one.

        Such an index can be continued later: if frames were cut off and replaced since, the next
        one does not continue the chain. Returns None if that is so now, or there was no frame.
        Bytes that are no frame end the index; a reader reports it.
        """
        raw_bytes_max = self._settings.batch_bytes_max
        frames = Frames(
            file, self._partition, index.place, raw_bytes_max, HEADERS_READ_BYTES, end=end
        )
        last = None
        is_sound = True
        try:
            while (header := frames.next_header()) is not None:
                if last is not None:
                    index.add(last)
                last = header
        except FrameError:
            is_sound = False
        if last is None:
            return None
        before = index.copy() if is_sound else None
        index.add(last)
        return before

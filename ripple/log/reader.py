"""Readers of a partition: any number, in any process, beside its writer."""

from __future__ import annotations

from bisect import bisect_right
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Self

import pyarrow as pa
import pyarrow.compute as pc

from ripple.batch import Batch, Marker
from ripple.log import body, frame
from ripple.log import index as index_file
from ripple.log.durable import durable_offset
from ripple.log.errors import (
    LogDamagedError,
    LogDivergedError,
    LogError,
    OffsetOutOfRangeError,
    TopicError,
)
from ripple.log.frame import NO_TIME_NS, TIME_NS_MAX, ChainError, FrameError, Header, Kind
from ripple.log.index import Index
from ripple.log.recovery import chain_at, check_present, frames_behind, short_of
from ripple.log.salvage import lost
from ripple.log.segment import Frame, Frames, Place, segment_path, segments

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from ripple.log.topic import Topic
    from ripple.world.ports import File

HEADERS_READ_BYTES = 1 << 14
# At the end of the log, each so manieth call asks what is known to be durable; the first one does.
CALLS_PER_LOOK = 50
GIVEN_UP = "it was lost from the log and given up"


class PartitionReader:
    """Reads one partition in order, from any offset, as far as whole frames are there.

    Invariants: what it returns is a gapless run of offsets; it never passes a frame that is not
    whole, and what cannot be a torn tail is a LogDamagedError: so is a log that ends before what is
    known to be durable. It holds at most one segment open and reads READ_BYTES ahead; the records
    of uncompressed frames share that memory.

    Records are seen as soon as they are written, before they are durable: who stores a cut calls
    ``sync`` first, or a power failure can leave the log shorter than the cut.
    """

    def __init__(self, topic: Topic, partition: int) -> None:
        """Read a partition of ``topic``; raises TopicError if there is no such partition."""
        self.topic = topic
        self.partition = partition
        self.header: Header | None = None  # of the frame that ``next`` has returned
        self._folder = topic.folder(partition)
        self._columns = body.columns_of(topic.schema)
        self._raw_bytes_max = topic.settings.batch_bytes_max
        self._file: File | None = None
        self._first = 0
        self._frames: Frames | None = None
        self._skip_to = 0
        self._calls = 0  # since the last frame

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the file; reading goes on where it was if it goes on."""
        self._skip_to = self.next_offset
        if self._file is not None:
            self._file.close()
        self._file = self._frames = None

    @property
    def next_offset(self) -> int:
        """The offset that is read next."""
        place = self._frames.place.offset if self._frames is not None else 0
        return max(place, self._skip_to)

    def read(
        self, from_offset: int | None = None, to_offset: int | None = None
    ) -> Iterator[Batch | Marker]:
        """Yield what is there from ``from_offset`` (the first, by default), before ``to_offset``.

        One batch per frame, cut where the range begins or ends within it. Raises as ``seek`` and
        ``next`` do.
        """
        self.seek(self._first_offset() if from_offset is None else from_offset)
        while to_offset is None or self.next_offset < to_offset:
            entry = self.next(to_offset)
            if entry is None:
                return
            yield entry

    async def follow(self, from_offset: int | None = None) -> AsyncIterator[Batch | Marker]:
        """Yield what is there and then what comes, as soon as it is written; never ends."""
        with closing(self.topic.disk.watch([self._folder])) as watch:
            self.seek(self._first_offset() if from_offset is None else from_offset)
            while True:
                entry = self.next()
                if entry is None:
                    await watch.changed()
                    self.look()
                else:
                    yield entry

    def look(self) -> None:
        """Let the next call of ``next`` ask what is known to be durable: something has happened."""
        self._calls = 0

    def range(self) -> tuple[int, int]:
        """Return the first offset that can be read, and the one after the last whole frame.

        Raises LogDamagedError when more is known to be durable.
        """
        # Before the segments are looked at: a writer may be at work.
        known_offset = self._known_offset()
        firsts = self._present(known_offset)
        if not firsts:
            return 0, 0
        end = self._index(firsts, len(firsts) - 1).place
        if end.offset < known_offset:
            raise short_of(known_offset, segment_path(self._folder, firsts[-1]), end)
        return firsts[0], end.offset

    def seek(self, offset: int) -> None:
        """Go to ``offset``.

        Raises OffsetOutOfRangeError saying what is available, LogDamagedError as ``range``.
        """
        firsts = self._present(self._known_offset())
        if not firsts and offset == 0:
            self.close()
            self._skip_to = 0
            return
        at = bisect_right(firsts, offset) - 1
        index = self._index(firsts, at) if at >= 0 else None
        if index is None or offset > index.place.offset:
            raise self._out_of_range(offset)
        self._enter(firsts[at], index.before_offset(offset))
        self._skip_to = offset

    def seek_time(self, time_ns: int) -> int:
        """Go to the first record whose event time is ``time_ns`` or later; return its offset.

        It is the end of the log if there is none. Event times need not be in order. Raises
        LogError if the topic has no time field.
        """
        if self.topic.time_field is None:
            raise LogError(f"{self.topic.path} has no time field to seek by")
        if time_ns > TIME_NS_MAX:
            self.seek(self.range()[1])
            return self.next_offset
        time_ns = max(time_ns, NO_TIME_NS)
        firsts = self._firsts()
        for at, first in enumerate(firsts):
            index = self._index(firsts, at)
            if index.time_ns_max >= time_ns or at == len(firsts) - 1:
                self._enter(first, index.before_time(time_ns))
                self._skip_to = 0
                return self._find_time(time_ns)
        self.seek(0)
        return 0

    def next(self, to_offset: int | None = None) -> Batch | Marker | None:
        """Return what comes next, cut at ``to_offset``; None if it is not there yet.

        Raises LogDamagedError, LogDivergedError, and OffsetOutOfRangeError when retention has
        overtaken the reader.
        """
        while True:
            found = self._next_frame()
            if found is None:
                return None
            if found.header.next_offset > self._skip_to:
                self.header = found.header
                return _until(self._entry(found), to_offset)

    def frame_with(self, offset: int) -> Frame:
        """Return the frame that holds ``offset``, and go to what follows it; raises as ``seek``."""
        self.seek(offset)
        while (found := self._next_frame()) is not None:
            if found.header.next_offset > offset:
                return found
        raise self._out_of_range(offset)

    def notes_at(self, offset: int) -> dict[str, str]:
        """Return the notes of the frame that holds ``offset``; otherwise as ``frame_with``."""
        found = self.frame_with(offset)
        if found.header.kind != Kind.RECORDS:
            return {}
        self._batch(found)
        return body.notes_of(frame.body_of(found.header, found.data, found.at))

    def sync(self) -> None:
        """Make all that was read durable, whatever the writer's policy. Raises SyncFailedError."""
        if self._file is not None:
            self._file.sync()

    # --- places ---

    def _firsts(self) -> list[int]:
        return segments(self.topic.disk, self._folder)

    def _known_offset(self) -> int:
        return durable_offset(self.topic, self.partition)

    def _present(self, known_offset: int) -> list[int]:
        """Return the first offsets of the segments; raises LogDamagedError if some are missing."""
        firsts = self._firsts()
        check_present(self.topic, self.partition, firsts, known_offset)
        return firsts

    def _first_offset(self) -> int:
        return next(iter(self._firsts()), 0)

    def _open(self, first: int) -> File:
        try:
            return self.topic.disk.open_to_read(segment_path(self._folder, first))
        except FileNotFoundError:
            raise self._out_of_range(first) from None

    def _index(self, firsts: list[int], at: int) -> Index:
        """Return a segment's index: its file, continued or built from the frames' headers."""
        first = firsts[at]
        interval_bytes = self.topic.settings.index_interval_bytes
        known = index_file.read(self.topic.disk, self._folder, first, interval_bytes)
        is_last = at == len(firsts) - 1
        if known is not None and not is_last and known.place.offset == firsts[at + 1]:
            return known
        with closing(self._open(first)) as file:
            if known is None or not is_last or known.place.position > file.size():
                known = Index(first, Place(0, first, chain_at(first)), interval_bytes)
            frames = Frames(
                file, self.partition, known.place, self._raw_bytes_max, HEADERS_READ_BYTES
            )
            # What is no frame ends the index; reading comes to it and says what it is.
            with suppress(FrameError):
                while (header := frames.next_header()) is not None:
                    known.add(header)
        return known

    def _enter(self, first: int, place: Place) -> None:
        """Open a segment and go to ``place``; an index that is wrong leads to the beginning."""
        file = self._open(first)
        self.close()
        self._file, self._first = file, first
        self._calls = 0
        start = Place(0, first, chain_at(first))
        self._frames = self._frames_at(place if place.position else start)
        if place.position and not self._is_frame_next(self._frames):
            self._frames = self._frames_at(start)

    def _frames_at(self, place: Place) -> Frames:
        assert self._file is not None
        return Frames(self._file, self.partition, place, self._raw_bytes_max)

    @staticmethod
    def _is_frame_next(frames: Frames) -> bool:
        place = frames.place
        try:
            return frames.next() is not None
        except FrameError:
            return False
        finally:
            frames.place = place

    def _find_time(self, time_ns: int) -> int:
        while (found := self._next_frame()) is not None:
            header = found.header
            if header.kind == Kind.RECORDS and header.time_ns_max >= time_ns:
                batch = self._batch(found)
                times = batch.records.column(self.topic.time_field)
                late = pc.fill_null(pc.greater_equal(times, pa.scalar(time_ns, pa.int64())), False)
                offsets = batch.offsets()[late.to_numpy(zero_copy_only=False)]
                if len(offsets):
                    self.seek(int(offsets[0]))
                    break
        return self.next_offset

    @property
    def _path(self) -> str:
        return segment_path(self._folder, self._first)

    def _out_of_range(self, offset: int) -> OffsetOutOfRangeError:
        return OffsetOutOfRangeError(self._folder, offset, *self.range())

    # --- frames ---

    def _next_frame(self) -> Frame | None:
        """Return the next frame, going on to the next segment where one ends."""
        if self._frames is None:
            self.seek(self._skip_to)
        must_go_on = False
        while self._frames is not None:
            try:
                found = self._frames.next()
            except FrameError as error:
                return self._judge(error)
            if found is not None:
                self._calls = 0
                return found
            if self._go_on():
                continue
            is_look_due = self._calls % CALLS_PER_LOOK == 0
            self._calls += 1
            if not (must_go_on or is_look_due):
                break
            known_offset = self._known_offset()
            if known_offset <= self._frames.place.offset:
                break
            if must_go_on:
                raise short_of(known_offset, self._path, self._frames.place)
            # It was perhaps written since, or to a new file of that name: look once more.
            must_go_on = True
            self._open_again()
        return None

    def _open_again(self) -> None:
        """Open the segment by its name; a writer may have put another file there."""
        assert self._file is not None
        assert self._frames is not None
        file = self._open(self._first)
        self._file.close()
        self._file = file
        self._frames = self._frames_at(self._frames.place)

    def _go_on(self) -> bool:
        """Enter the next segment if this one has been read to its end."""
        assert self._file is not None
        assert self._frames is not None
        place = self._frames.place
        firsts = self._firsts()
        if not firsts:
            raise TopicError(f"{self._folder}: the log is gone: somebody has removed its segments")
        size = self._file.size()
        if size < place.position:
            self.range()  # which raises if what is missing was durable
            raise LogDivergedError(self._path, place.position, place.offset)
        is_followed = place.offset in firsts and place.offset != self._first
        if not is_followed and firsts[-1:] <= [place.offset]:
            return False
        if firsts[0] > place.offset:
            raise self._out_of_range(place.offset)
        if size > place.position:
            # Perhaps it was written between reading and looking; a sealed one is complete by now.
            self._frames.forget()
            if self._is_frame_next(self._frames):
                return True
            reason = "bytes that are no frame end it" if is_followed else "a frame is not whole"
            raise LogDamagedError(self._path, place.position, place.offset, reason)
        if not is_followed:
            reason = f"it ends there, but the next segment is {firsts[-1]}"
            raise LogDamagedError(self._path, place.position, place.offset, reason)
        file = self._open(place.offset)
        self._file.close()
        self._file, self._first = file, place.offset
        self._frames = self._frames_at(Place(0, place.offset, place.chain))
        return True

    def _judge(self, error: FrameError) -> Frame | None:
        """Look again at what is no frame: whole by now, a tail still being written, or damage."""
        assert self._file is not None
        assert self._frames is not None
        place = self._frames.place
        is_sealed = self._firsts()[-1:] > [place.offset]
        behind = frames_behind(self._file, place.position, self._file.size())
        known_offset = max([self._known_offset(), *(header.durable_offset for _, header in behind)])
        # Only now, so that what was written meanwhile is not taken for damage.
        self._open_again()
        try:
            found = self._frames.next()
        except ChainError:
            raise LogDivergedError(self._path, place.position, place.offset) from None
        except FrameError as again:
            error = again
        else:
            if found is not None:
                return found
            error = FrameError("a frame is not whole")
        if known_offset > place.offset:
            raise short_of(known_offset, self._path, place, str(error)) from None
        if is_sealed:
            raise LogDamagedError(self._path, place.position, place.offset, str(error)) from None
        return None

    def _entry(self, found: Frame) -> Batch | Marker:
        header = found.header
        if header.kind == Kind.MARKER:
            return Marker(header.time_ns_min, header.next_offset)
        batch = self._batch(found)
        if header.first_offset < self._skip_to:
            _, batch = batch.split_at(self._skip_to)
        return batch

    def _batch(self, found: Frame) -> Batch:
        header = found.header
        if header.kind == Kind.LOST:
            records, rejected = lost(self._columns, header, GIVEN_UP)
            return Batch(records, header.next_offset, rejected)
        try:
            records, rejected = body.read(header, found.data, found.at, self._columns)
            return Batch(records, header.next_offset, rejected)
        except FrameError as error:
            place = self._frames.place if self._frames is not None else Place(0, 0, None)
            position = place.position - header.length
            raise LogDamagedError(self._path, position, header.first_offset, str(error)) from error


def _until(entry: Batch | Marker, to_offset: int | None) -> Batch | Marker:
    if to_offset is None or isinstance(entry, Marker) or entry.next_offset <= to_offset:
        return entry
    head, _ = entry.split_at(to_offset)
    return head

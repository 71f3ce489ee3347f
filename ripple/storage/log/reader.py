"""Readers of a partition: any number, in any process, concurrent with its writer."""

from __future__ import annotations

from bisect import bisect_right
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Self

import pyarrow as pa
import pyarrow.compute as pc

from ripple.model.batch import Batch, Marker
from ripple.storage.log import body, frame
from ripple.storage.log.durable import durable_offset
from ripple.storage.log.epochs import Listing, newest_fence
from ripple.storage.log.errors import (
    LogDamagedError,
    LogDivergedError,
    LogError,
    OffsetOutOfRangeError,
    TopicError,
)
from ripple.storage.log.files import open_segment
from ripple.storage.log.frame import NO_TIME_NS, TIME_NS_MAX, ChainError, FrameError, Header, Kind
from ripple.storage.log.indexing import Indexes
from ripple.storage.log.recovery import chain_at, check_present, frames_behind, short_of
from ripple.storage.log.salvage import lost
from ripple.storage.log.segment import Frame, FramePosition, Frames, Segment
from ripple.world.ports import all_guards

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from ripple.storage.log.epochs import Epochs
    from ripple.storage.log.index import Index
    from ripple.storage.log.topic import Topic
    from ripple.world.ports import File, Guards

# At the end of the log, one call in so many checks the durable offset, beginning with the first.
CALLS_PER_LOOK = 50
POSITION_END = 1 << 62
GIVEN_UP = "it was lost from the log and given up"


class PartitionReader:
    """Reads one partition in order, from any offset up to the last complete frame.

    Invariants: the returned offsets have no gap; it never skips an incomplete frame; anything but a
    torn tail raises LogDamagedError, and so does a log that ends before the known durable offset.
    It holds at most one segment open and reads READ_BYTES ahead; the records of uncompressed frames
    share that memory.

    Records are visible as soon as they are written, before they are durable: call ``sync`` before
    storing a cut, or a power failure can leave the log shorter than the cut. During a takeover only
    records known to be durable are visible.
    """

    def __init__(self, topic: Topic, partition: int, *, guards: Guards = all_guards) -> None:
        """Read a partition of ``topic``; raises TopicError if there is no such partition.

        guards: the active safeguards, for tests of the tests.
        """
        self.topic = topic
        self.partition = partition
        self.header: Header | None = None  # of the frame that ``next`` has returned
        self._folder = topic.folder(partition)
        self._listing = Listing(topic.disk, self._folder)
        self._columns = body.columns_of(topic.schema)
        self._raw_bytes_max = topic.settings.batch_bytes_max
        self._guards = guards
        self._indexes = Indexes(topic, partition)
        self._file: File | None = None
        self._segment = Segment(0)
        self._believed_to = 0  # the position in the file below which nobody had fenced its owner
        self._frames: Frames | None = None
        self._skip_to = 0
        self._calls = 0  # since the last frame

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the file; a later read continues at the same offset."""
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
        """Yield the content from ``from_offset`` (by default the first) to before ``to_offset``.

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
        """Yield the present content, then new records as they are written; never ends."""
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
        """Let the next call of ``next`` check the durable offset."""
        self._calls = 0

    def range(self, *, whole: bool = False) -> tuple[int, int]:
        """Return the first readable offset, and the one after the last.

        The end is that of the last complete frame; during a takeover, unless ``whole``, the known
        durable offset. Raises LogDamagedError when the log ends before the durable offset.
        """
        while True:
            first_offset, next_offset, epoch = self._there()
            if whole:
                return first_offset, next_offset
            # After the frames were read: those written before a fence stay.
            if newest_fence(self.topic.disk, self._folder) <= epoch:
                return first_offset, next_offset
            if self._epochs().newest == epoch:
                return first_offset, max(first_offset, self._known_offset())

    def _there(self) -> tuple[int, int, int]:
        """Return the first offset, the end of the last complete frame, and its epoch."""
        # Before the segments are read: a writer may be active.
        known_offset = self._known_offset()
        present = self._present(known_offset)
        if not present:
            return 0, 0, self._epochs().newest
        end = self._index(present, len(present) - 1).place
        if end.offset < known_offset:
            raise short_of(known_offset, present[-1].path(self._folder), end)
        return present[0].first_offset, end.offset, present[-1].epoch

    def seek(self, offset: int) -> None:
        """Go to ``offset``.

        Raises OffsetOutOfRangeError with the available range, LogDamagedError as ``range``. Does
        nothing if the reader is there already; the next read finds any change.
        """
        if self._frames is not None and self._frames.place.offset == offset:
            self._skip_to, self._calls = offset, 0
            return
        present = self._present(self._known_offset())
        if not present and offset == 0:
            self.close()
            self._skip_to = 0
            return
        at = _at(present, offset)
        index = self._index(present, at) if at >= 0 else None
        if index is None or offset > index.place.offset:
            raise self._out_of_range(offset)
        self._enter(present[at], index.before_offset(offset))
        self._skip_to = offset

    def reaches(self, offset: int) -> bool:
        """Return whether this segment certainly has all frames from here up to an offset.

        False means unknown. Does not move the reader.
        """
        frames = self._frames
        if frames is None:
            return False
        place = frames.place
        try:
            while frames.place.offset < offset and frames.next_header() is not None:
                pass
            return place.offset <= offset <= frames.place.offset
        except FrameError:
            return False
        finally:
            frames.place = place

    def seek_time(self, time_ns: int) -> int:
        """Go to the first record whose event time is ``time_ns`` or later; return its offset.

        Goes to the end of the log if there is none. Event times need not be in order. Raises
        LogError if the topic has no time field.
        """
        if self.topic.time_field is None:
            raise LogError(f"{self.topic.path} has no time field to seek by")
        if time_ns > TIME_NS_MAX:
            self.seek(self.range()[1])
            return self.next_offset
        time_ns = max(time_ns, NO_TIME_NS)
        present = self._segments()
        for at, segment in enumerate(present):
            index = self._index(present, at)
            if index.time_ns_max >= time_ns or at == len(present) - 1:
                self._enter(segment, index.before_time(time_ns))
                self._skip_to = 0
                return self._find_time(time_ns)
        self.seek(0)
        return 0

    def next(self, to_offset: int | None = None) -> Batch | Marker | None:
        """Return the next batch or marker, cut at ``to_offset``; None at the end.

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
        """Return the frame that holds ``offset``, and move past it; raises as ``seek``."""
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
        """Make all records read so far durable. Raises SyncFailedError."""
        if self._file is not None:
            self._file.sync()

    # --- positions ---

    def _segments(self) -> list[Segment]:
        return self._listing.now().segments

    def _epochs(self) -> Epochs:
        return self._listing.now().epochs

    def _known_offset(self) -> int:
        return durable_offset(self.topic, self.partition, self._listing)

    def _present(self, known_offset: int) -> list[Segment]:
        """Return the segments; raises LogDamagedError if some are missing."""
        present = self._segments()
        check_present(self.topic, self.partition, present, known_offset)
        return present

    def _first_offset(self) -> int:
        return next((one.first_offset for one in self._segments()), 0)

    def _open(self, segment: Segment) -> File:
        try:
            return open_segment(self.topic.disk, self._folder, segment)
        except FileNotFoundError:
            raise self._out_of_range(segment.first_offset) from None

    def _index(self, present: list[Segment], at: int) -> Index:
        following = present[at + 1].first_offset if at + 1 < len(present) else None
        return self._indexes.of(present[at], following, self._open)

    def _enter(self, segment: Segment, place: FramePosition) -> None:
        """Open a segment and go to ``place``; after a wrong index, to its beginning."""
        file = self._open(segment)
        self.close()
        self._calls = 0
        start = FramePosition(0, segment.first_offset, chain_at(segment.first_offset))
        self._go_to(segment, file, place if place.position else start)
        assert self._frames is not None
        if place.position and not self._is_frame_next(self._frames):
            self._go_to(segment, file, start)

    def _go_to(self, segment: Segment, file: File, place: FramePosition) -> None:
        self._file, self._segment = file, segment
        self._believed_to = 0
        self._frames = Frames(file, self.partition, place, self._raw_bytes_max, end=segment.end)

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
        return self._segment.path(self._folder)

    def _out_of_range(self, offset: int) -> OffsetOutOfRangeError:
        return OffsetOutOfRangeError(self._folder, offset, *self.range(whole=True))

    # --- frames ---

    def _next_frame(self) -> Frame | None:
        """Return the next frame, also across the end of a segment."""
        if self._frames is None:
            self.seek(self._skip_to)
        has_looked = False
        while self._frames is not None:
            place = self._frames.place
            try:
                found = self._frames.next()
            except FrameError as error:
                if self._heed_seal():
                    continue
                return self._judge(error)
            if found is None:
                if self._heed_seal() or self._go_on():
                    continue
                if not self._is_more_durable(has_looked=has_looked):
                    break
                # Perhaps it was written since, or to a new file of that name: look once more.
                has_looked = True
                self._open_again()
            elif self._is_believed(found):
                self._calls = 0
                return found
            else:
                self._frames.place = place
                if not self._heed_seal():
                    break
        return None

    def _is_more_durable(self, *, has_looked: bool) -> bool:
        """Return whether the log ends before the durable offset; raises if ``has_looked``."""
        assert self._frames is not None
        is_look_due = self._calls % CALLS_PER_LOOK == 0
        self._calls += 1
        if not (has_looked or is_look_due):
            return False
        known_offset = self._known_offset()
        if known_offset <= self._frames.place.offset:
            return False
        if has_looked:
            raise short_of(known_offset, self._path, self._frames.place)
        return True

    def _is_believed(self, found: Frame) -> bool:
        """Return whether a frame that was read survives any takeover.

        It does if its writer was not fenced after it had been read.
        """
        assert self._frames is not None
        if self._segment.end is not None or self._frames.place.position <= self._believed_to:
            return True
        fence = newest_fence(self.topic.disk, self._folder)
        if fence <= self._segment.epoch or not self._guards("seal_heeded"):
            self._believed_to = self._frames.read_to
            return True
        present = self._segments()
        at = next((at for at, one in enumerate(present) if one[:2] == self._segment[:2]), None)
        if at == len(present) - 1:  # not sealed yet
            return found.header.next_offset <= self._known_offset()
        if at is not None and present[at].end is None:  # another one of its epoch follows
            self._believed_to = POSITION_END
            return True
        end = self._epochs().end_of(self._segment.epoch)
        if at is not None:
            self._segment, self._frames.end = present[at], end
        return end is None or found.header.next_offset <= end

    def _heed_seal(self) -> bool:
        """Apply a seal that came since the segment was entered; return whether there is one.

        It ends the segment, or this epoch ended before the last frame read.
        """
        assert self._frames is not None
        if not self._guards("seal_heeded"):
            return False
        end = self._epochs().end_of(self._segment.epoch)
        if end is None:
            return False
        if self._frames.place.offset >= end:
            self._cross()
            return True
        if self._segment.end is not None:
            return False
        now = [one for one in self._segments() if one[:2] == self._segment[:2]]
        if not now or now[0].end is None:
            return False  # retention has removed it, or another one of its epoch follows
        self._segment, self._frames.end = now[0], end
        self._frames.forget()
        return True

    def _cross(self) -> None:
        """Switch to the segment of a later owner that has the next offset."""
        assert self._file is not None
        assert self._frames is not None
        _, offset, chain = self._frames.place
        present = self._present(self._known_offset())
        at = _at(present, offset)
        if at < 0:
            raise self._out_of_range(offset)
        segment = present[at]
        file = self._open(segment)
        place = FramePosition(
            0, segment.first_offset, chain if segment.first_offset == offset else None
        )
        frames = Frames(file, self.partition, place, self._raw_bytes_max, end=segment.end)
        with suppress(FrameError):
            while frames.place.offset < offset and frames.next_header() is not None:
                pass
        is_known = None not in (chain, frames.place.chain)
        if frames.place.offset != offset or (is_known and frames.place.chain != chain):
            file.close()
            raise LogDivergedError(segment.path(self._folder), frames.place.position, offset)
        self._file.close()
        self._calls = 0
        self._go_to(segment, file, frames.place)

    def _open_again(self) -> None:
        """Reopen the segment by its name, for a writer may have replaced the file."""
        assert self._file is not None
        assert self._frames is not None
        file = self._open(self._segment)
        self._file.close()
        self._go_to(self._segment, file, self._frames.place)

    def _go_on(self) -> bool:
        """Enter the next segment at the end of this one."""
        assert self._file is not None
        assert self._frames is not None
        place = self._frames.place
        present = self._segments()
        firsts = [one.first_offset for one in present]
        if not firsts:
            raise TopicError(f"{self._folder}: the log is gone: its segments were removed")
        size = self._file.size()
        if size < place.position:
            self.range()  # which raises if the missing records were durable
            raise LogDivergedError(self._path, place.position, place.offset)
        is_followed = place.offset in firsts and place.offset != self._segment.first_offset
        if not is_followed and firsts[-1:] <= [place.offset]:
            return False
        if firsts[0] > place.offset:
            raise self._out_of_range(place.offset)
        if size > place.position and self._segment.end is None:
            # Perhaps it was written between the two steps; a sealed one is complete by now.
            self._frames.forget()
            if self._is_frame_next(self._frames):
                return True
            reason = (
                "it ends in bytes that are not a frame" if is_followed else "a frame is incomplete"
            )
            raise LogDamagedError(self._path, place.position, place.offset, reason)
        if not is_followed:
            reason = f"it ends there, but the next segment is {firsts[-1]}"
            raise LogDamagedError(self._path, place.position, place.offset, reason)
        following = present[firsts.index(place.offset)]
        file = self._open(following)
        self._file.close()
        self._go_to(following, file, FramePosition(0, place.offset, place.chain))
        return True

    def _judge(self, error: FrameError) -> Frame | None:
        """Classify bytes that are not a frame: complete by now, a tail being written, or damage."""
        assert self._file is not None
        assert self._frames is not None
        place = self._frames.place
        is_sealed = [one.first_offset for one in self._segments()[-1:]] > [place.offset]
        behind = frames_behind(self._file, place.position, self._file.size())
        known_offset = max([self._known_offset(), *(header.durable_offset for _, header in behind)])
        # Only now, so that frames written meanwhile are not taken for damage.
        self._open_again()
        try:
            found = self._frames.next()
        except ChainError:
            raise LogDivergedError(self._path, place.position, place.offset) from None
        except FrameError as again:
            error = again
        else:
            if found is not None:
                if self._is_believed(found):
                    return found
                self._frames.place = place
                return None
            error = FrameError("a frame is incomplete")
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
            place = self._frames.place if self._frames is not None else FramePosition(0, 0, None)
            position = place.position - header.length
            raise LogDamagedError(self._path, position, header.first_offset, str(error)) from error


def _until(entry: Batch | Marker, to_offset: int | None) -> Batch | Marker:
    if to_offset is None or isinstance(entry, Marker) or entry.next_offset <= to_offset:
        return entry
    head, _ = entry.split_at(to_offset)
    return head


def _at(present: list[Segment], offset: int) -> int:
    """Return the index of the segment with the offset, -1 if it precedes all."""
    return bisect_right(present, offset, key=lambda one: one.first_offset) - 1

"""One lane: a partition of a repartition topic, with one writer at a time and one reader."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.core import cut as cuts
from ripple.core.errors import InputError, LimitError
from ripple.model.batch import Batch
from ripple.storage.log import PartitionReader, PartitionWriter
from ripple.task.repartition.rows import MARK, Mark, ends_in, records_of, void_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ripple.core.cut import Cut
    from ripple.storage.log import Topic
    from ripple.world.ports import Clock, Guards


@dataclass(frozen=True, slots=True)
class Section:
    """All rows of one cut of the sender, with the lane's own fields, and its mark.

    next_offset: in the lane, after the mark.
    """

    rows: pa.RecordBatch
    mark: Mark
    next_offset: int


class LaneWriter:
    """Adds a cut's rows and its mark, for the owner of an epoch.

    Invariant: after the last ``mark`` there are no records that could be taken for a part of the
    next cut.
    """

    def __init__(
        self, topic: Topic, lane: int, clock: Clock, *, epoch: int | None, guards: Guards
    ) -> None:
        """Take the lane over; raises as PartitionWriter does."""
        self._topic = topic
        self.lane = lane
        self._writer = PartitionWriter(
            topic, lane, clock, holder="a sender", epoch=epoch, guards=guards
        )
        try:
            with PartitionReader(topic, lane, guards=guards) as reader:
                self.mark, is_whole = _last_mark(reader, self._writer.next_offset)
            if not is_whole and guards("void"):
                self._writer.append(void_of(topic.schema, self.mark))
        except BaseException:
            self._writer.close()
            raise

    @property
    def has_sealed(self) -> bool:
        """Whether there are segments that could be removed."""
        return self._writer.has_sealed

    def add(self, rows: pa.RecordBatch, mark: Mark) -> None:
        """Append a cut, durably. Raises OSError, StaleEpochError and WriterFailedError."""
        self._append(records_of(self._topic.schema, rows, mark))
        self._writer.sync()
        self.mark = mark

    def release(self, cut: Cut) -> None:
        """Remove segments that no receiver at ``cut`` or after needs."""
        with LaneReader(self._topic, self.lane) as reader:
            reader.seek(cut)
            self._writer.release(reader.next_offset)

    def close(self) -> None:
        """Release the lane."""
        self._writer.close()

    def _append(self, records: pa.RecordBatch) -> None:
        try:
            self._writer.append(records)
        except LimitError:
            if records.num_rows == 1:
                raise
            half = records.num_rows // 2
            self._append(records.slice(0, half))
            self._append(records.slice(half))


class LaneReader:
    """Reads a lane by whole cuts.

    Where it has come to the end it looks again only after ``look``: to look costs as much as to
    read, and most lanes are at their end most of the time.
    """

    def __init__(self, topic: Topic, lane: int) -> None:
        self.lane = lane
        self._topic = topic
        self._reader = PartitionReader(topic, lane)
        self._rows: list[pa.RecordBatch] = []
        self._left: Batch | None = None
        self._is_at_end = False
        self.next_offset = 0

    def __enter__(self) -> LaneReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def range(self) -> tuple[Cut | None, Cut | None]:
        """Return the cut from which one can read, None for the very beginning, and the last one."""
        with PartitionReader(self._topic, self.lane) as reader:
            first, end = reader.range()
            found = _next_mark(reader, first, end) if first else None
            last, _ = _last_mark(reader, end)
        since = None if found is None else found[1].since
        return since, None if last is None else last.cut

    def seek(self, cut: Cut | None) -> None:
        """Go to the last mark at or before ``cut``; None is the very beginning.

        Raises InputError where that was removed.
        """
        first, end = self._reader.range()
        low, high = first, end
        while low < high and cut is not None:
            middle = (low + high) // 2
            found = _next_mark(self._reader, middle, end)
            if found is None or not cuts.is_within(found[1].cut, cut):
                high = middle
            else:
                low = found[0] + 1
        if first and low == first:
            following = _next_mark(self._reader, first, end)
            since = None if following is None else following[1].since
            if following is not None and (
                cut is None or since is None or not cuts.is_within(since, cut)
            ):
                raise InputError(
                    f"{self._topic.path}/{self.lane} was read from "
                    f"{cuts.text(cut or {}) or 'its beginning'} on, but what is there begins at "
                    f"{cuts.text(since or {})}: its reader's checkpoints are lost. Begin with "
                    "another folder, and other outputs"
                )
        self._go_to(low)

    def _go_to(self, offset: int) -> None:
        self._reader.seek(offset)
        self._rows, self._left, self._is_at_end = [], None, False
        self.next_offset = offset

    def next(self) -> Section | None:
        """Return the next whole cut, None while it is not there. Raises InputError as readers do.

        Voided rows are skipped.
        """
        while True:
            batch, self._left = self._left, None
            if batch is None:
                entry = None if self._is_at_end else self._reader.next()
                if entry is None:
                    self._is_at_end = True
                    return None
                assert isinstance(entry, Batch), "nobody else writes markers here"
                batch = entry
            if batch.rejected:
                raise InputError(
                    f"{self._topic.path}/{self.lane}: records from offset {batch.first_offset} on "
                    "were lost and given up: begin with another folder, and other outputs"
                )
            ends = ends_in(batch.records)
            if not ends:
                self._rows.append(batch.records)
                continue
            row, kind, mark = ends[0]
            count = batch.records.num_rows
            rows, self._rows = [*self._rows, batch.records.slice(0, row)], []
            offset = batch.next_offset - count + row + 1
            if row + 1 < count:
                self._left = Batch(batch.records.slice(row + 1), batch.next_offset)
            self.next_offset = offset
            if kind == MARK:
                assert mark is not None
                return Section(pa.concat_batches(rows), mark, offset)

    def look(self) -> None:
        """Look again: something has happened to the log."""
        self._is_at_end = False
        self._reader.look()

    def sync(self) -> None:
        """Make the records read durable."""
        self._reader.sync()

    def close(self) -> None:
        """Release the file."""
        self._reader.close()


def _entries(reader: PartitionReader, start: int, end: int) -> Iterator[Batch]:
    reader.seek(start)
    while reader.next_offset < end:
        entry = reader.next(end)
        if entry is None:
            return
        assert isinstance(entry, Batch), "nobody else writes markers here"
        yield entry


def _next_mark(reader: PartitionReader, start: int, end: int) -> tuple[int, Mark] | None:
    """Return the first mark from ``start`` on, and its offset; a void repeats the one before.

    One of a void from the very beginning, which names none, is skipped.
    """
    for batch in _entries(reader, start, end):
        for row, _, mark in ends_in(batch.records):
            if mark is not None:
                return int(batch.offsets()[row]), mark
    return None


def _last_mark(reader: PartitionReader, end: int) -> tuple[Mark | None, bool]:
    """Return the last mark before ``end``, and whether no valid rows are after it."""
    first, _ = reader.range(whole=True)
    at, is_whole = end, True
    while at > first:
        begin = max(first, reader.frame_with(at - 1).header.first_offset)
        for batch in reversed(list(_entries(reader, begin, at))):
            ends = ends_in(batch.records)
            if ends:
                row, _, mark = ends[-1]
                return mark, is_whole and row + 1 == batch.records.num_rows
            is_whole = is_whole and not batch.records.num_rows
        at = begin
    return None, is_whole


def in_batches(count: int, rows: int) -> Iterator[tuple[int, int]]:
    """Yield where batches of so many rows begin and end in ``count``; one without rows for none."""
    starts = np.arange(0, max(1, count), rows).tolist()
    yield from ((start, min(start + rows, count)) for start in starts)

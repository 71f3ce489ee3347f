"""Held rows of a stream, until a mark has passed them."""

from __future__ import annotations

from collections import deque
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from ripple.engine.operators.arrow_types import arrow_column, arrow_fields
from ripple.engine.snapshots.internal import internal

if TYPE_CHECKING:
    import numpy.typing as npt

    from ripple.engine.operators.rows import Rows
    from ripple.model.pipeline.nodes import Fields

    Ints = npt.NDArray[np.int64]

TIME, PLACE, IDENTITY = internal("time"), internal("place"), internal("identity")
_MERGED_ROWS_MAX = 4096
_QUEUED_ROWS_MIN = 256
# The first part of the queue alone is cut again and again: a copy costs more than its memory.
_CUT_ROWS_MAX = 4096


class Part(NamedTuple):
    """Rows by (time, place), with these as columns after their own."""

    first_ns: int
    number: int
    rows: pa.RecordBatch
    times: Ints
    """The event time of each row, rising."""
    whole: int
    """The number of rows in its memory."""

    @property
    def last(self) -> tuple[int, int]:
        """The time and place of the last row."""
        return int(self.times[-1]), self.rows.column(PLACE)[-1].as_py()


class HeldRows:
    """Rows with their event times and places, taken out by (time, place).

    They are held in parts, each in this order. Parts in order among themselves are a queue. Of the
    others large ones are in a heap, small ones a list of falling sizes, which are merged, so
    that neither taking rows nor holding more costs much.
    """

    def __init__(self, fields: Fields, *, identities: bool = False) -> None:
        """Hold rows of which these fields are kept, and perhaps identities.

        Those are needed where places alone do not tell them, as of final rows.
        """
        self._fields = arrow_fields(fields)
        self._has_identities = identities
        names = [TIME, PLACE, *([IDENTITY] if identities else [])]
        own = [pa.field(name, pa.int64()) for name in names]
        self.schema = pa.schema([*self._fields, *own])
        self._queue: deque[Part] = deque()
        self._large: list[Part] = []
        self._small: list[Part] = []
        self._numbers = 0

    def hold(self, rows: Rows, identities: Ints | None = None) -> None:
        """Hold rows of one batch."""
        if rows.count:
            self.add(self.batch_of(rows, identities))

    def batch_of(self, rows: Rows, identities: Ints | None = None) -> pa.RecordBatch:
        """Return rows as they are held."""
        assert rows.offsets is not None
        own = [np.asarray(rows.times_ns, np.int64), rows.offsets]
        if self._has_identities:
            own.append(np.zeros(rows.count, np.int64) if identities is None else identities)
        columns = [arrow_column(rows.columns[field.name], field.type) for field in self._fields]
        return pa.RecordBatch.from_arrays([*columns, *map(pa.array, own)], schema=self.schema)

    def add(self, batch: pa.RecordBatch) -> None:
        """Hold rows with times and places, of which there are some."""
        batch = in_order(batch)
        behind = self._behind_queue(batch)
        if behind < batch.num_rows:
            self._queue_up(_alone(batch.slice(behind), batch.num_rows) if behind else batch)
        if behind:
            self._hold_behind(_alone(batch.slice(0, behind), batch.num_rows))

    def _behind_queue(self, batch: pa.RecordBatch) -> int:
        """Return how many of these rows, which are the first, are before the last one queued."""
        if not self._queue:
            return 0
        time_ns, place = self._queue[-1].last
        times, places = np.asarray(batch.column(TIME)), np.asarray(batch.column(PLACE))
        if (times[0], places[0]) > (time_ns, place):
            return 0
        first, end = np.searchsorted(times, time_ns), np.searchsorted(times, time_ns, "right")
        return int(first + np.searchsorted(places[first:end], place, "right"))

    def _queue_up(self, batch: pa.RecordBatch) -> None:
        """Hold rows after all those queued; of a few at a time, some become one part."""
        queue = self._queue
        while queue and queue[-1].rows.num_rows < min(2 * batch.num_rows, _QUEUED_ROWS_MIN):
            batch = pa.concat_batches([queue.pop().rows, batch])
        queue.append(self._part(batch))

    def _hold_behind(self, batch: pa.RecordBatch) -> None:
        """Hold rows that are before some of those queued."""
        while self._small and self._small[-1].rows.num_rows <= 2 * batch.num_rows:
            batch = in_order(pa.concat_batches([self._small.pop().rows, batch]))
        if batch.num_rows < _MERGED_ROWS_MAX:
            self._small.append(self._part(batch))
        else:
            heappush(self._large, self._part(batch))

    def _part(self, batch: pa.RecordBatch, whole: int = 0) -> Part:
        self._numbers += 1
        times = np.asarray(batch.column(TIME))
        return Part(int(times[0]), self._numbers, batch, times, max(whole, len(times)))

    def _rest(self, one: Part, at: int, shared: int = 0) -> Part:
        """Return the rows of a part from one on.

        shared: the rows of the part up to which they are not copied out of it.
        """
        rows = one.rows.slice(at)
        alone = rows if one.whole <= shared else _alone(rows, one.whole)
        return self._part(alone, one.whole if alone is rows else 0)

    def take_below(self, mark_ns: int) -> pa.RecordBatch | None:
        """Take out the rows below a mark, in their order; None if there are none."""
        taken, behind = self._take_queued(mark_ns), self._take_behind(mark_ns)
        if len(taken) + len(behind) < 2:
            return next(iter(taken or behind), None)
        rows = pa.concat_batches(taken + behind)
        return in_order(rows) if behind else rows

    def _take_queued(self, mark_ns: int) -> list[pa.RecordBatch]:
        taken: list[pa.RecordBatch] = []
        queue = self._queue
        while queue and queue[0].first_ns < mark_ns:
            one = queue.popleft()
            at = _cut(one, mark_ns)
            taken.append(one.rows.slice(0, at))
            if at < one.rows.num_rows:
                queue.appendleft(self._rest(one, at, _CUT_ROWS_MAX))
        return taken

    def _take_behind(self, mark_ns: int) -> list[pa.RecordBatch]:
        taken: list[pa.RecordBatch] = []
        while self._large and self._large[0].first_ns < mark_ns:
            one = heappop(self._large)
            taken.append(one.rows.slice(0, _cut(one, mark_ns)))
            self._leave(one, mark_ns, self._large)
        small, self._small = self._small, []
        for one in small:
            if one.first_ns < mark_ns:
                taken.append(one.rows.slice(0, _cut(one, mark_ns)))
            self._leave(one, mark_ns, None)
        return taken

    def _leave(self, one: Part, mark_ns: int, heap: list[Part] | None) -> None:
        """Hold the rest of a part: in the heap, or with the small parts."""
        rest = one if one.first_ns >= mark_ns else None
        if rest is None:
            at = _cut(one, mark_ns)
            if at == one.rows.num_rows:
                return
            rest = self._rest(one, at)
        if heap is None:
            self._small.append(rest)
        else:
            heappush(heap, rest)

    @property
    def _parts(self) -> list[Part]:
        return [*self._queue, *self._large, *self._small]

    def parts(self) -> list[pa.RecordBatch]:
        """Return the held rows."""
        return [one.rows for one in sorted(self._parts, key=lambda one: (one.first_ns, one.number))]

    @property
    def count(self) -> int:
        """The number of rows."""
        return sum(one.rows.num_rows for one in self._parts)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(one.rows.nbytes for one in self._parts)


def _cut(one: Part, mark_ns: int) -> int:
    """Return how many rows are below a mark."""
    return int(np.searchsorted(one.times, mark_ns))


def _alone(rows: pa.RecordBatch, whole: int) -> pa.RecordBatch:
    """Return rows without the memory of many others, which a few that stay would hold."""
    if 2 * rows.num_rows >= whole:
        return rows
    return rows.take(pa.array(np.arange(rows.num_rows)))


def in_order(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows by (time, place)."""
    times, places = np.asarray(batch.column(TIME)), np.asarray(batch.column(PLACE))
    rise = times[1:] > times[:-1]
    if (rise | ((times[1:] == times[:-1]) & (places[1:] > places[:-1]))).all():
        return batch
    return batch.take(pa.array(np.lexsort((places, times))))

"""A source into which a program pushes rows."""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from ripple.connectors.cutting import joined
from ripple.connectors.inputs import Signal
from ripple.connectors.memory import ColumnsFound, as_mapping, of_arrow, of_rows
from ripple.connectors.python_values import plain_types
from ripple.connectors.record_shape import RecordShape, arrow_schema_of
from ripple.connectors.transforms.forms import as_written
from ripple.connectors.validation import screened
from ripple.core.arguments import need_whole
from ripple.core.calls import called
from ripple.core.errors import InputError, LimitError
from ripple.model.pipeline.checks import checks_in, flat_record_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.core.cut import Cut
    from ripple.model.batch import Batch
    from ripple.model.schema.types import Schema

_OVER = "the run that reads this stream has ended"


class _Waiting(NamedTuple):
    """A wait in an event loop for ``rows`` written rows; None: for the beginning of a run.

    for_room: for room for a row, or the end of the stream.
    """

    rows: int | None
    for_room: bool
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[int]


class Stream:
    """Rows that a program pushes to a run, as they happen.

    Any thread may push, and any event loop wait. The rows are in order of their pushes, and each
    has an offset. A run reads a stream once. One that resumes from a checkpoint begins with the
    offset after the checkpoint's: ``opened`` returns it, and rows from there on are pushed again.

    ``max_rows`` pushed rows wait at most. ``push`` waits for room, but not where an event loop
    runs, which it would block: there it raises LimitError, and ``await apush`` waits.
    """

    # Invariants, under the lock: ``_pushed`` and ``_taken`` count rows, and ``_items`` are those
    # between. ``_base`` is the offset of the first row ever pushed, once a run has opened the
    # stream. Rows before ``_written`` are written to the outputs.

    @called("rp.Stream")
    def __init__(self, record: type | Schema, *, max_rows: int = 10_000) -> None:
        """Take the record class of the source. max_rows: that wait at most.

        Raises SchemaError unless ``record`` is a record class or a flat schema.
        """
        cls, schema, _ = flat_record_of(record, "record")
        self._max_rows = need_whole("max_rows", max_rows, 1)
        self._record_shape = RecordShape(schema, checks_in(cls, schema))
        self._shape = as_written(self._record_shape)
        self._plain = plain_types(self._shape.schema.fields)
        self._changed = threading.Condition()
        self._items: deque[Mapping[str, Any] | pa.RecordBatch] = deque()
        self._pushed = self._taken = self._written = 0
        self._base: int | None = None
        self._reader: StreamInputs | None = None
        self._process = 0
        self._is_closed = self._is_over = False
        self._waiting: list[_Waiting] = []
        self._wake: Callable[[], object] = lambda: None

    # --- for the program ---

    def push(self, row: Any) -> None:
        """Push a row, a mapping or an instance of the record class, or a table of rows.

        Waits where ``max_rows`` wait already, in order of pushes. A value that its field cannot
        hold makes a dead letter. Raises SchemaError for one of another type and for an absent
        field, InputError for no row, and once the stream is closed or the run has ended;
        LimitError where an event loop runs and there is no room.
        """
        items = self._checked(row)
        for item in items:
            with self._changed:
                if not self._has_room() and _in_a_loop():
                    raise LimitError(
                        f"{self._max_rows} rows wait already, and push would block the event "
                        "loop: write await stream.apush(...)"
                    )
                self._changed.wait_for(self._has_room)
                self._add(item)

    async def apush(self, row: Any) -> None:
        """Push a row or a table as ``push`` does, and let the event loop go on where it waits."""
        for item in self._checked(row):
            while True:
                with self._changed:
                    if self._has_room():
                        self._add(item)
                        break
                    room = self._wait_for(None, for_room=True)
                await room

    async def opened(self) -> int:
        """Wait until a run reads the stream; return the offset of the first row to push."""
        with self._changed:
            if self._base is not None:
                return self._base
            found = self._wait_for(None)
        return await found

    async def drained(self) -> None:
        """Wait until all rows pushed so far are computed, and their changes given to the outputs.

        Raises InputError if the run ends before.
        """
        with self._changed:
            if self._written >= self._pushed:
                return
            done = self._wait_for(self._pushed)
        await done

    def close(self) -> None:
        """Push nothing more: the run ends after the rows that are there."""
        with self._changed:
            self._is_closed = True
            self._answer()
            self._changed.notify_all()
            self._wake()

    @property
    def next_offset(self) -> int | None:
        """The offset of the next row to push; None until a run reads the stream."""
        with self._changed:
            return None if self._base is None else self._base + self._pushed

    # --- inside ---

    def _checked(self, row: Any) -> list[Mapping[str, Any] | pa.RecordBatch]:
        """Return a row, or the batches of a table. Raises as ``push`` does."""
        shape = self._shape
        if hasattr(row, "__arrow_c_stream__") or isinstance(row, pa.RecordBatch):
            schema = arrow_schema_of(shape.schema.fields)
            held = of_arrow(row, schema, shape)
            return [part for one in held for part in _parts(one.records, self._max_rows)]
        taken = dict(as_mapping(row, self._pushed))
        if not all(type(taken.get(name, ...)) in types for name, types in self._plain.items()):
            columns = ColumnsFound(shape, None)
            columns.look([taken])
            columns.check()
            of_rows([taken], shape, self._pushed)
        return [taken]

    def _has_room(self) -> bool:
        return self._pushed - self._taken < self._max_rows or self._is_closed or self._is_over

    def _add(self, item: Mapping[str, Any] | pa.RecordBatch) -> None:
        """Take an item, under the lock. Raises InputError where nobody reads it."""
        if self._is_over:
            raise InputError(f"nothing can be pushed: {_OVER}")
        if self._is_closed:
            raise InputError("nothing can be pushed: the stream is closed")
        if self._reader is not None and os.getpid() != self._process:
            raise InputError(
                "nothing can be pushed: the run that reads this stream is in another process"
            )
        self._items.append(item)
        self._pushed += _rows_in(item)
        self._wake()

    def _wait_for(self, rows: int | None, *, for_room: bool = False) -> asyncio.Future[int]:
        """Return the answer of a wait, under the lock."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[int] = loop.create_future()
        if self._is_over:
            answer.set_exception(InputError(_OVER))
        else:
            self._waiting.append(_Waiting(rows, for_room, loop, answer))
        return answer

    def _answer(self) -> None:
        """Answer those whose wait is over, under the lock."""
        left: list[_Waiting] = []
        for one in self._waiting:
            reached = self._base if one.rows is None else self._written
            if one.for_room:
                reached = self._taken if self._has_room() else None
            if self._is_over and (reached is None or reached < (one.rows or 0)):
                _resolve(one, InputError(_OVER))
            elif reached is not None and reached >= (one.rows or 0):
                _resolve(one, reached)
            else:
                left.append(one)
        self._waiting = left

    # --- for the run ---

    def inputs(self, name: str, shape: RecordShape) -> StreamInputs:
        """Return the stream as the inputs of one run, as the source ``name`` of a pipeline.

        Raises InputError where its records are others than ``shape`` says, or it was read before.
        """
        if shape.schema.fields != self._shape.schema.fields:
            raise InputError(
                f"the stream has records {self._record_shape.schema.name!r}, and source {name!r} "
                f"reads {shape.schema.name!r}: make it of the same class"
            )
        return StreamInputs(self, name, shape)

    def _open(self, reader: StreamInputs, at: int, wake: Callable[[], object]) -> None:
        with self._changed:
            if self._reader not in (None, reader):
                raise InputError("a stream is read by one run: make another rp.Stream")
            if self._is_over:
                raise InputError(f"a stream is read by one run: make another rp.Stream; {_OVER}")
            self._reader, self._process = reader, os.getpid()
            if self._base is None:
                self._base = at
            elif at != self._base + self._taken:
                raise InputError(
                    f"a stream cannot go back to offset {at}: rows before "
                    f"{self._base + self._taken} are taken; start the run again, and push from the "
                    "offset that opened() returns"
                )
            self._wake = wake
            self._answer()

    def _take(self, at: int, rows_max: int) -> list[Mapping[str, Any] | pa.RecordBatch] | Signal:
        """Return the rows from offset ``at`` on, at most so many; those before are written."""
        with self._changed:
            assert self._base is not None
            self._written = at - self._base
            taken: list[Mapping[str, Any] | pa.RecordBatch] = []
            while self._items and rows_max:
                item = self._items.popleft()
                if isinstance(item, pa.RecordBatch) and item.num_rows > rows_max:
                    self._items.appendleft(item.slice(rows_max))
                    item = item.slice(0, rows_max)
                taken.append(item)
                rows = _rows_in(item)
                self._taken += rows
                rows_max -= rows
            self._answer()
            self._changed.notify_all()
            if taken:
                return taken
            return Signal.ENDED if self._is_closed else Signal.WAITING

    def _end(self, reader: StreamInputs) -> None:
        with self._changed:
            if self._reader not in (None, reader):
                return
            self._is_over = True
            self._wake = lambda: None
            self._items.clear()
            self._answer()
            self._changed.notify_all()


class StreamInputs:
    """A stream as the inputs of a run. See Inputs."""

    def __init__(self, stream: Stream, name: str, shape: RecordShape) -> None:
        self.name = name
        self._stream = stream
        self._shape = shape
        self._rows = 1
        self._stop: int | None = None
        self._more = asyncio.Event()

    @property
    def names(self) -> tuple[str, ...]:
        """The only input."""
        return (self.name,)

    async def bounds(self) -> tuple[Cut, Cut]:
        """Return the beginning; there is no end."""
        return {self.name: 0}, {}

    async def check(self, cut: Cut, identities: Mapping[str, str]) -> None:
        """Accept: the program says which rows come after ``cut``."""

    async def identities(self, cut: Cut) -> dict[str, str]:
        """Return no identity."""
        return dict.fromkeys(cut, "")

    async def open(self, cut: Cut, rows: int, stop: Cut | None = None) -> None:
        """Go to ``cut``: at first any, then the one that was reached."""
        self._rows = rows
        self._stop = None if stop is None else stop[self.name]
        self._more = more = asyncio.Event()
        loop = asyncio.get_running_loop()
        self._stream._open(self, cut[self.name], lambda: loop.call_soon_threadsafe(more.set))

    def next(self, cut: Cut) -> tuple[str, Batch] | Signal:
        """Return the pushed rows, up to the end of a batch; see Inputs."""
        at = cut[self.name]
        if self._stop is not None and at >= self._stop:
            return Signal.ENDED
        end = (at // self._rows + 1) * self._rows
        end = end if self._stop is None else min(end, self._stop)
        taken = self._stream._take(at, end - at)
        return taken if isinstance(taken, Signal) else (self.name, self._batch(taken, at))

    def _batch(self, taken: list[Mapping[str, Any] | pa.RecordBatch], at: int) -> Batch:
        batches: list[Batch] = []
        rows: list[Mapping[str, Any]] = []

        def flush() -> None:
            nonlocal at
            if rows:
                held = of_rows(rows, self._shape, at)
                batches.append(screened(held.records, self._shape, at, held.refused, held.shown))
                at += len(rows)
                rows.clear()

        for item in taken:
            if isinstance(item, pa.RecordBatch):
                flush()
                batches.append(screened(item, self._shape, at))
                at += item.num_rows
            else:
                rows.append(item)
        flush()
        return batches[0] if len(batches) == 1 else joined(batches)

    async def more(self) -> None:
        """Wait until something was pushed, or the stream is closed."""
        await self._more.wait()
        self._more.clear()

    def wake(self) -> None:
        """Let ``more`` return."""
        self._more.set()

    async def sync(self) -> None:
        """Do nothing: the program has the rows."""

    async def close(self) -> None:
        """End the stream: nothing more can be pushed."""
        self._stream._end(self)


def _parts(records: pa.RecordBatch, rows: int) -> list[pa.RecordBatch]:
    """Return a batch in parts of some rows at most."""
    return [records.slice(at, rows) for at in range(0, records.num_rows, rows)]


def _rows_in(item: Mapping[str, Any] | pa.RecordBatch) -> int:
    return int(item.num_rows) if isinstance(item, pa.RecordBatch) else 1


def _resolve(one: _Waiting, answer: int | Exception) -> None:
    def act() -> None:
        if one.answer.done():  # it was cancelled
            return
        if isinstance(answer, Exception):
            one.answer.set_exception(answer)
        else:
            one.answer.set_result(answer)

    if not one.loop.is_closed():
        one.loop.call_soon_threadsafe(act)


def _in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True

"""A stream's buffer between threads and event loops: the waits, and their ends."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TYPE_CHECKING, NamedTuple

from ripple.connectors.stream_buffer import OVER, StreamBuffer
from ripple.core.errors import InputError, LimitError
from ripple.world.running_loop import is_in_a_loop

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.connectors.inputs import Signal
    from ripple.connectors.stream_buffer import Pushed


class _Waiting(NamedTuple):
    """A wait in an event loop. reached: returns its answer, None as long as there is none."""

    reached: Callable[[], int | None]
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[int]


class StreamChannel:
    """A stream between its program and its run. Any thread may push, and any event loop wait.

    The buffer, the waits and the reader are used under the lock alone. A change of the
    buffer ends the waits that it answers; the end of the run ends all others, with an InputError.
    """

    def __init__(self, rows_max: int) -> None:
        """Begin with no rows. rows_max: in the buffer, as of StreamBuffer."""
        self._rows_max = rows_max
        self._changed = threading.Condition()
        self._buffer = StreamBuffer(rows_max)
        self._waiting: list[_Waiting] = []
        self._reader: object = None
        self._process = 0
        self._wake: Callable[[], object] = lambda: None

    # --- for the program ---

    @property
    def pushed(self) -> int:
        """The number of rows ever pushed."""
        return self._buffer.pushed

    @property
    def next_offset(self) -> int | None:
        """The offset of the next row to push; None until a run reads the stream."""
        with self._changed:
            return self._buffer.next_offset

    def push(self, item: Pushed) -> None:
        """Push an item, once there is room. Raises as ``Stream.push`` does."""
        with self._changed:
            if not self._buffer.has_room:
                if is_in_a_loop():
                    raise LimitError(
                        f"{self._rows_max} rows wait already, and push would block the event loop: "
                        "write await stream.apush(...)"
                    )
                self._changed.wait_for(lambda: self._buffer.has_room)
            self._add(item)

    async def apush(self, item: Pushed) -> None:
        """Push an item, once there is room."""
        while True:
            with self._changed:
                if self._buffer.has_room:
                    self._add(item)
                    return
                room = self._wait_for(self._room)
            await room

    async def opened(self) -> int:
        """Wait for a run; return its first offset."""
        return await self._reached(lambda: self._buffer.base)

    async def drained(self) -> None:
        """Wait until all rows pushed so far are written."""
        buffer, until = self._buffer, self.pushed
        await self._reached(lambda: buffer.written if buffer.written >= until else None)

    def close(self) -> None:
        """Take no more rows."""
        with self._changed:
            self._buffer.is_closed = True
            self._notify()
            self._wake()

    # --- for the run ---

    def begin(self, reader: object, at: int, wake: Callable[[], object]) -> None:
        """Begin a run at an offset; see StreamBuffer. wake: called at a push, in any thread.

        Raises InputError where another reader has begun.
        """
        with self._changed:
            if self._reader not in (None, reader):
                raise InputError("a stream is read by one run: make another rp.Stream")
            self._buffer.begin(at)
            self._reader, self._process, self._wake = reader, os.getpid(), wake
            self._notify()

    def take(self, at: int, rows_max: int) -> list[Pushed] | Signal:
        """Return the rows from offset ``at`` on, at most so many; those before are written."""
        with self._changed:
            taken = self._buffer.take(at, rows_max)
            self._notify()
            return taken

    def end(self, reader: object) -> None:
        """End the run of a reader; other runs continue."""
        with self._changed:
            if self._reader not in (None, reader):
                return
            self._buffer.end()
            self._wake = lambda: None
            self._notify()

    # --- under the lock ---

    def _add(self, item: Pushed) -> None:
        """Add an item. Raises InputError where no run takes it."""
        self._buffer.check_open()
        if self._reader is not None and os.getpid() != self._process:
            raise InputError(
                "nothing can be pushed: the run that reads this stream is in another process"
            )
        self._buffer.add(item)
        self._wake()

    def _room(self) -> int | None:
        return self._buffer.taken if self._buffer.has_room else None

    async def _reached(self, reached: Callable[[], int | None]) -> int:
        """Wait for an answer. Raises InputError if the run ends before."""
        with self._changed:
            found = reached()
            if found is not None:
                return found
            if self._buffer.is_over:
                raise InputError(OVER)
            answer = self._wait_for(reached)
        return await answer

    def _wait_for(self, reached: Callable[[], int | None]) -> asyncio.Future[int]:
        """Return the future answer of an unfinished wait."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[int] = loop.create_future()
        self._waiting.append(_Waiting(reached, loop, answer))
        return answer

    def _notify(self) -> None:
        """End the finished waits, in threads and in event loops."""
        waiting, self._waiting = self._waiting, []
        for one in waiting:
            reached = one.reached()
            if reached is not None:
                _resolve(one, reached)
            elif self._buffer.is_over:
                _resolve(one, InputError(OVER))
            else:
                self._waiting.append(one)
        self._changed.notify_all()


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

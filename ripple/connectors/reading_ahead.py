"""Reads an input ahead of its consumer, in a concurrent task."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

CANCEL_S = 1.0


class ReadingAhead:
    """The reading task, its wait, and its waiting consumer.

    Invariants: one task at a time. The error that ends it is raised when more is asked for, so
    that no consumer waits for a finished task; records read until then are handed out before.
    """

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None
        self._failure: Exception | None = None
        self._more, self._room = asyncio.Event(), asyncio.Event()

    def start(
        self,
        read: Callable[[], Coroutine[Any, Any, None]],
        error_of: Callable[[Exception], Exception] = lambda error: error,
    ) -> None:
        """Read from here on. error_of: its end, as an error to raise."""
        assert self._task is None, "it reads already"
        self._failure = None
        was_woken = self._more.is_set()
        # An event stays with the loop that has waited for it; each one-shot run has a loop.
        self._more, self._room = asyncio.Event(), asyncio.Event()
        if was_woken:
            self._more.set()
        self._task = asyncio.create_task(self._run(read, error_of))

    async def _run(
        self,
        read: Callable[[], Coroutine[Any, Any, None]],
        error_of: Callable[[Exception], Exception],
    ) -> None:
        try:
            await read()
        except Exception as error:  # of any kind: no consumer may wait for ever
            self._failure = error_of(error)
            if self._failure is not error:
                self._failure.__cause__ = error
        finally:
            self._more.set()

    async def stop(self) -> None:
        """Stop reading; records read so far remain the consumer's."""
        task, self._task = self._task, None
        if task is None:
            return
        while not task.done():  # there are clients that take no notice while they flush
            task.cancel()
            await asyncio.wait([task], timeout=CANCEL_S)
        with suppress(asyncio.CancelledError):
            await task

    @property
    def is_at_work(self) -> bool:
        """Whether more is being read."""
        return self._task is not None and not self._task.done()

    @property
    def has_failed(self) -> bool:
        """Whether nothing more will be read."""
        return self._failure is not None

    def check(self) -> None:
        """Raise the error that has ended the reading."""
        if self._failure is not None:
            raise self._failure

    # --- the consumer ---

    async def more(self) -> None:
        """Wait until more was read, or cannot be."""
        await self._more.wait()
        self._more.clear()

    def wake(self) -> None:
        """Let ``more`` return: more was read, or another event needs the consumer."""
        self._more.set()

    # --- the task ---

    async def room(self) -> None:
        """Wait until something was taken."""
        self._room.clear()
        await self._room.wait()

    def took(self) -> None:
        """Let ``room`` return."""
        self._room.set()


class ReadAhead:
    """The common part of Inputs that a task reads ahead: how their consumer waits."""

    def __init__(self) -> None:
        self.reading = ReadingAhead()

    async def more(self) -> None:
        """Wait until more was read, or cannot be."""
        await self.reading.more()

    def wake(self) -> None:
        """Let ``more`` return."""
        self.reading.wake()

    async def sync(self) -> None:
        """Do nothing: the source itself is durable."""

"""Sources and sinks that live in an event loop, for a run in a thread."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator
from concurrent.futures import CancelledError, Future
from functools import partial
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any

from ripple.connectors.python_sinks import CallingSink, takes_commit
from ripple.core.errors import InputError, OutputError
from ripple.model.schema.python_rows import python_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator

    import pyarrow as pa

    from ripple.connectors.contract import Commit
    from ripple.model.pipeline.nodes import Output

AHEAD_MAX = 1000


class LoopItems:
    """Items of an async iterable or an ``asyncio.Queue``, read ahead in the loop.

    Iterated in another thread, it yields them in bursts. At most AHEAD_MAX are ahead.
    """

    def __init__(self, source: AsyncIterable[Any] | asyncio.Queue[Any]) -> None:
        """Take a source of the running loop; nothing is read before the first burst."""
        self._loop = asyncio.get_running_loop()
        self._items = _queued(source) if isinstance(source, asyncio.Queue) else aiter(source)
        self._ahead: list[Any] = []
        self._is_ended = False
        self._error: Exception | None = None
        self._changed = asyncio.Event()
        self._room = asyncio.Event()
        self._reading: asyncio.Task[None] | None = None

    def __iter__(self) -> Iterator[Any]:
        """Yield the items, in another thread than the loop's; raises their error at the end."""
        while burst := asyncio.run_coroutine_threadsafe(self._burst(), self._loop).result():
            yield from burst

    async def _burst(self) -> list[Any]:
        """Return the items that are there, once there are some; none at the end."""
        if self._reading is None and not self._is_ended:
            self._reading = asyncio.create_task(self._read())
        while not self._ahead and not self._is_ended:
            self._changed.clear()
            await self._changed.wait()
        burst, self._ahead = self._ahead, []
        self._room.set()
        if not burst and self._error is not None:
            raise self._error
        return burst

    async def _read(self) -> None:
        try:
            async for item in self._items:
                self._ahead.append(item)
                self._changed.set()
                while len(self._ahead) >= AHEAD_MAX:
                    self._room.clear()
                    await self._room.wait()
        except Exception as error:  # any error of a user's iterator
            self._error = error
        except asyncio.CancelledError:
            if not self._is_ended:  # it is no end: the rows are not all there
                self._error = InputError("the source was cancelled before its end")
            raise
        finally:
            self._is_ended = True
            self._changed.set()

    async def close(self) -> None:
        """Stop reading, and close an async generator."""
        self._is_ended = True
        self._changed.set()
        if self._reading is not None:
            self._reading.cancel()
            await asyncio.wait([self._reading])
        close = getattr(self._items, "aclose", None)
        if close is not None:
            await close()


async def _queued(queue: asyncio.Queue[Any]) -> AsyncIterator[Any]:
    """Yield the items of a queue up to the first None."""
    while (item := await queue.get()) is not None:
        yield item


class LoopCalls:
    """Coroutines that other threads await in the running loop, until they are given up."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._now: dict[Future[None], None] = {}  # in the order of the calls
        self._is_over = False

    def wait(self, call: Coroutine[Any, Any, None]) -> None:
        """Await a coroutine, from another thread. Raises OutputError where it is given up."""
        future = asyncio.run_coroutine_threadsafe(call, self._loop)
        self._now[future] = None
        if self._is_over:
            future.cancel()
        try:
            future.result()
        except CancelledError:
            raise OutputError("the run was cancelled before its changes were taken") from None
        finally:
            self._now.pop(future, None)

    def give_up(self) -> None:
        """End all waits. It is called in the loop."""
        self._is_over = True
        for future in [*self._now]:
            future.cancel()


def loop_sink(place: Any, output: Output, calls: LoopCalls) -> CallingSink | None:
    """Return the sink of an async function or queue of the running loop; None for anything else.

    A function, or an async ``write``, takes each batch of changes, as in ``python_sinks``; a queue
    takes each row.
    """
    if isinstance(place, asyncio.Queue):
        put: Callable[..., Coroutine[Any, Any, None]] = partial(_put_each, place)
    else:
        write = place if iscoroutinefunction(place) else getattr(place, "write", None)
        if not iscoroutinefunction(write):
            return None
        put = write if takes_commit(write) else partial(_without_commit, write)

    def act(changes: pa.RecordBatch, reached: Commit) -> None:
        calls.wait(put(changes, reached))

    name = getattr(place, "__qualname__", type(place).__name__)
    return CallingSink(name, output, act)


async def _put_each(queue: asyncio.Queue[Any], changes: pa.RecordBatch, _: Commit) -> None:
    for row in python_rows(changes):
        await queue.put(row)


async def _without_commit(write: Any, changes: pa.RecordBatch, _: Commit) -> None:
    await write(changes)

"""An iterator run ahead of its consumer, in a background thread where that is of use."""

from __future__ import annotations

import atexit
import sys
import threading
from queue import SimpleQueue
from typing import TYPE_CHECKING, Generic, TypeVar

from ripple.core.frozen import frozen
from ripple.world import processors

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

T = TypeVar("T")


@frozen
class _End:
    error: BaseException | None


def prefetched(
    items: Iterator[T], items_max: int, interrupt: Callable[[], None], *, waits: bool = True
) -> Generator[T, None, None]:
    """Yield ``items`` in order while a thread computes at most ``items_max`` ahead.

    waits: whether ``items`` may wait for something. Where they only compute, and there is but one
    processor, a thread would take turns with its consumer: there is none then.

    An exception of ``items`` is raised here, after all items before it. Closing the generator calls
    ``interrupt``, which must make a waiting ``items`` end, and joins the thread; so does the end of
    the process, however much was read.
    """
    if not waits and processors.usable() == 1:
        yield from items
        return
    reading = _Reading(items, items_max, interrupt)
    # Once the interpreter shuts down its other threads stand still, and cannot be joined.
    atexit.register(reading.stop)
    try:
        yield from reading.received()
    finally:
        reading.stop()
        atexit.unregister(reading.stop)


class _Reading(Generic[T]):
    """The thread and its results."""

    def __init__(self, items: Iterator[T], items_max: int, interrupt: Callable[[], None]) -> None:
        self._items = items
        self._interrupt = interrupt
        self._channel: SimpleQueue[T | _End] = SimpleQueue()
        self._room = threading.Semaphore(items_max)
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="prefetch", daemon=True)
        self._thread.start()

    def received(self) -> Iterator[T]:
        while not isinstance(item := self._channel.get(), _End):
            self._room.release()
            yield item
        self._stopped = True
        if item.error is not None:
            raise item.error

    def stop(self) -> None:
        if not self._stopped:
            self._stopped = True
            self._interrupt()
            self._room.release()
        # The garbage collector may close the generator in this very thread.
        if threading.current_thread() is not self._thread and not sys.is_finalizing():
            self._thread.join()

    def _run(self) -> None:
        error: BaseException | None = None
        try:
            for item in self._items:
                self._room.acquire()
                if self._stopped:
                    break
                self._channel.put(item)
        except BaseException as raised:
            error = raised
        self._channel.put(_End(error))

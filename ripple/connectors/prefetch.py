"""An iterator run ahead of its consumer, in one background thread."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from queue import Queue
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _End:
    error: BaseException | None


def prefetched(
    items: Iterator[T], items_max: int, interrupt: Callable[[], None]
) -> Generator[T, None, None]:
    """Yield ``items`` in order while a thread computes at most ``items_max`` ahead.

    An exception of ``items`` is raised here, after everything that came before it. Closing the
    generator calls ``interrupt``, which must make a waiting ``items`` end, and joins the thread.
    """
    channel: Queue[T | _End] = Queue(items_max)
    stopped = threading.Event()

    def run() -> None:
        error: BaseException | None = None
        try:
            for item in items:
                if stopped.is_set():
                    break
                channel.put(item)
        except BaseException as raised:
            error = raised
        channel.put(_End(error))

    thread = threading.Thread(target=run, name="prefetch", daemon=True)
    thread.start()
    ended = False
    try:
        while not isinstance(item := channel.get(), _End):
            yield item
        ended = True
        if item.error is not None:
            raise item.error
    finally:
        if not ended:
            stopped.set()
            interrupt()
            while not isinstance(channel.get(), _End):
                pass
        thread.join()

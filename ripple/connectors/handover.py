"""A bounded buffer from a thread that makes items to one that takes them in bursts."""

from __future__ import annotations

import sys
import threading
from collections import deque
from contextvars import copy_context
from enum import Enum
from typing import TYPE_CHECKING, Generic, TypeVar

from ripple.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

T = TypeVar("T")

LINGER_S = 0.004
"""How long a burst waits for more after its first item."""


class Pause(Enum):
    """Stands among items where no more were there for now."""

    PAUSE = "pause"


class HandoverOverError(InputError):
    """The taker has stopped."""


class Handover(Generic[T]):
    """The buffer. One thread puts, and one takes.

    Invariants: ``_put`` and ``_taken``, the weights put and taken in all, are each changed by one
    thread; they differ by ``weight_max`` and one item at most. A thread that waits says for what
    before it looks once more, so that the other one, which looks after each step, wakes it: then
    alone the lock is taken. After ``end`` nothing is put, and after ``stop`` nothing is taken.
    """

    def __init__(self, weight_max: int, weight_of: Callable[[T], int] = lambda _: 1) -> None:
        self._weight_of = weight_of
        self._changed = threading.Condition()
        self._items: deque[T] = deque()
        self._put = self._taken = 0
        self._weight_max = weight_max
        self._wanted = sys.maxsize  # the weight that a waiting taker needs
        self._is_full = False
        self._is_ended = self._is_stopped = False
        self._error: BaseException | None = None

    def put(self, item: T) -> None:
        """Add an item, once there is room. Raises HandoverOverError after ``stop``."""
        self.put_all((item,))

    def put_all(self, items: Iterable[T]) -> None:
        """Add items one by one, as ``put`` does."""
        append, weight_of = self._items.append, self._weight_of
        for item in items:
            if self._put - self._taken >= self._weight_max:
                with self._changed:
                    self._is_full = True
                    self._changed.wait_for(self._has_room)
                    self._is_full = False
            if self._is_stopped:
                raise HandoverOverError("nobody takes these rows any more: the run has ended")
            append(item)
            self._put += 1 if type(item) is dict else weight_of(item)
            if self._put - self._taken >= self._wanted:
                self._wake()

    def _has_room(self) -> bool:
        return self._put - self._taken < self._weight_max or self._is_stopped

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def end(self, error: BaseException | None = None) -> None:
        """Let the taker see the end, or an error, after all items."""
        self._is_ended, self._error = True, error
        self._wake()

    def stop(self) -> None:
        """Take nothing more: let a waiting thread go on."""
        self._is_stopped = True
        self._wake()

    def burst(self, weight: int, linger_s: float = LINGER_S) -> tuple[list[T], bool]:
        """Wait for an item, and a little for more; return at most so many, and if it is a pause.

        A burst without items is the end. Raises the error of ``end`` after all items.
        """
        self._wait(1, None)
        self._wait(weight, linger_s)
        is_ended = self._is_ended  # whatever was put before is seen below
        taken: list[T] = []
        heavy = 0
        while self._items and heavy < weight:
            item = self._items.popleft()
            taken.append(item)
            heavy += 1 if type(item) is dict else self._weight_of(item)
        self._taken += heavy
        if self._is_full:
            self._wake()
        if not taken and self._error is not None:
            raise self._error
        return taken, heavy < weight and not is_ended

    def _wait(self, weight: int, timeout_s: float | None) -> None:
        """Wait for so much, or the end."""

        def is_there() -> bool:
            return self._put - self._taken >= weight or self._is_ended

        if is_there():
            return
        with self._changed:
            self._wanted = weight
            self._changed.wait_for(is_there, timeout_s)
            self._wanted = sys.maxsize


class LiveItems(Generic[T]):
    """Items that a thread of their own makes, with PAUSE where no more are there for now.

    At most twice ``weight_max`` are ahead, of items of weight 1. They are iterated once.
    """

    def __init__(
        self, items: Iterator[T], weight_max: int, weight_of: Callable[[T], int] = lambda _: 1
    ) -> None:
        """Take an iterator; nothing is read before this is iterated."""
        self._items = items
        self._weight_max = weight_max
        self._handover: Handover[T] = Handover(weight_max, weight_of)

    def __iter__(self) -> Iterator[T | Pause]:
        """Yield the items. An exception of the iterator is raised after all items before it."""
        context = copy_context()
        making = threading.Thread(
            target=context.run, args=(_make, self._items, self._handover), daemon=True
        )
        making.start()
        try:
            while True:
                taken, is_pause = self._handover.burst(self._weight_max)
                if not taken:
                    return
                yield from taken
                if is_pause:
                    yield Pause.PAUSE
        finally:
            self.close()

    def end(self) -> None:
        """Let an iteration that waits for an item end, from another thread."""
        self._handover.end()

    def close(self) -> None:
        """Let the thread end with its next item."""
        self._handover.stop()


def _make(items: Iterator[T], handover: Handover[T]) -> None:
    error: BaseException | None = None
    try:
        handover.put_all(items)
    except HandoverOverError:
        close = getattr(items, "close", None)  # of a generator, which may hold something
        if close is not None:
            close()
    except BaseException as raised:
        error = raised
    handover.end(error)

"""Jobs that take turns at every call of their disks, in an order that a seed decides."""

from __future__ import annotations

import threading
from collections.abc import Callable
from random import Random
from typing import Any

from ripple.testing import SimDisk

Job = Callable[[Callable[[], None]], None]
"""Takes what to call where another may have its turn."""


def take_turns(seed: int, *jobs: Job) -> None:
    """Run the jobs to their ends, one at a time; raise the first error of any of them."""
    random = Random(seed)
    batons = [threading.Semaphore(0) for _ in jobs]
    running = list(range(len(jobs)))
    errors: list[BaseException] = []

    def run(number: int) -> None:
        def pause() -> None:
            chosen = random.choice(running)
            if chosen != number:
                batons[chosen].release()
                batons[number].acquire()

        batons[number].acquire()
        try:
            jobs[number](pause)
        except BaseException as error:
            errors.append(error)
        running.remove(number)
        if running:
            batons[random.choice(running)].release()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(jobs))]
    for thread in threads:
        thread.start()
    batons[0].release()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def shared(disk: SimDisk, pause: Callable[[], None]) -> Any:
    """Return a disk as one of several jobs has it: each call lets others have their turn."""
    return _Shared(disk, pause)


class _Shared:
    """A disk or a file; what is appended to it others may see half of."""

    def __init__(self, one: Any, pause: Callable[[], None]) -> None:
        self._one = one
        self._pause = pause

    def append(self, data: bytes) -> None:
        middle = len(data) // 2
        for piece in (bytes(data[:middle]), bytes(data[middle:])):
            self._pause()
            self._one.append(piece)

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._one, name)

        def call(*arguments: Any, **named: Any) -> Any:
            self._pause()
            result = method(*arguments, **named)
            return _Shared(result, self._pause) if name.startswith("open") else result

        return call

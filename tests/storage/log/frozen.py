"""A process that is frozen between two calls of its disk, as SIGSTOP freezes one."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ripple.testing import SimDisk
from ripple.testing.sim.effects import Crash
from tests.storage.log.turns import shared


@dataclass
class Frozen:
    """A program that stops before the nth call of its disk, until it is woken.

    Of its appends to segments, the one of number ``fail_at`` says that it failed.
    """

    program: Callable[[Any], None]
    disk: SimDisk
    stop_at: int
    fail_at: int = 0
    calls: int = 0
    appends: int = 0
    is_dead: bool = False
    error: BaseException | None = None
    _ended: bool = False
    _stopped: threading.Event = field(default_factory=threading.Event)
    _woken: threading.Event = field(default_factory=threading.Event)
    _thread: Any = None

    def start(self) -> bool:
        """Run until it stops; return whether it did before it ended."""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._stopped.wait()
        return self._thread.is_alive() and self.calls == self.stop_at and not self._ended

    def wake(self, *, dies: bool = False) -> None:
        self.is_dead = dies
        self._woken.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            self.program(_Failing(shared(self.disk, self._pause), self))
        except BaseException as error:
            self.error = error
        self._ended = True
        self._stopped.set()

    def _pause(self) -> None:
        self.calls += 1
        if self.calls == self.stop_at:
            self._stopped.set()
            self._woken.wait()
        if self.is_dead:
            raise Crash


class _Failing:
    """A disk, or a file, of which one append succeeds and says that it did not."""

    def __init__(self, one: Any, frozen: Frozen) -> None:
        self._one = one
        self._frozen = frozen

    def append(self, data: bytes) -> None:
        self._one.append(data)
        self._frozen.appends += 1
        if self._frozen.appends == self._frozen.fail_at:
            raise InterruptedError(errno.EINTR, "it was written all the same")

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._one, name)
        if not name.startswith("open"):
            return method

        def opened(path: str, **named: Any) -> Any:
            file = method(path, **named)
            return _Failing(file, self._frozen) if path.endswith(".log") else file

        return opened

"""Children as processes of this machine: spawned, never forked from a process with threads."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING

from ripple.control.environment import ENVIRONMENT
from worker.pipe import DUMP_SIGNAL, IGNORED_SIGNALS, Pipe

if TYPE_CHECKING:
    from collections.abc import Callable

SPARES_AFTER_S = 5.0


class Process:
    """A child process; see Engine."""

    def __init__(self, process: asyncio.subprocess.Process, pipe: Pipe) -> None:
        self.pipe = pipe
        self._process = process
        self._handle = _handle_of(process.pid)

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended, as far as is known."""
        return self._process.returncode is None

    async def wait(self) -> str:
        """Wait until it has ended."""
        code = await self._process.wait()
        handle, self._handle = self._handle, None
        if handle is not None:
            os.close(handle)
        return f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"

    def dump(self) -> None:
        """Let it write the stacks of its threads to standard error."""
        self._signal(DUMP_SIGNAL)

    def kill(self) -> None:
        """End it at once."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        # Not through asyncio, which polls first whether the process has ended, and so takes the
        # exit status from the waiter.
        with suppress(ProcessLookupError):
            if self._handle is not None:
                signal.pidfd_send_signal(self._handle, number)
            elif self._process.returncode is None:
                os.kill(self._process.pid, number)


def _handle_of(pid: int) -> int | None:
    """Return a handle that stays valid when the process id is reused, if the system has one."""
    with suppress(AttributeError, OSError):
        return os.pidfd_open(pid)
    return None


class Spawner:
    """Starts children, and sends each its first message.

    Spares are started ahead of need: loading code takes longer than the rest of a partition's
    recovery. Invariant: a spare has received no message yet, so it may become the child of any
    slot.
    """

    def __init__(
        self,
        begin: Callable[[int], bytes],
        *,
        spares: int = 0,
        spares_after_s: float = SPARES_AFTER_S,
    ) -> None:
        """Take the function that makes the first message for a slot.

        spares: how many wait; they are started some time after one was taken.
        """
        self._begin = begin
        self._wanted, self._after_s = spares, spares_after_s
        self._spares: deque[Process] = deque()
        self._filling: asyncio.Task[None] | None = None

    async def __call__(self, slot: int) -> Process:
        """Return a child of a slot. Raises OSError."""
        one = await self._spare() or await _started()
        self._fill()
        with suppress(ConnectionError):  # ``wait`` reports how it ended
            await one.pipe.write(self._begin(slot))
        return one

    @property
    def spares(self) -> tuple[int, ...]:
        """The process ids of waiting spares."""
        return tuple(one.pid for one in self._spares)

    async def close(self) -> None:
        """Kill all spares."""
        if self._filling is not None:
            self._filling.cancel()
            await asyncio.wait([self._filling])
        while self._spares:
            await _end(self._spares.popleft())

    async def _spare(self) -> Process | None:
        """Return the oldest living spare."""
        while self._spares:
            one = self._spares.popleft()
            if one.is_alive:
                return one
            await _end(one)
        return None

    def _fill(self) -> None:
        """Start missing spares, later: the process that was asked for has the processors first."""
        if self._wanted and (self._filling is None or self._filling.done()):
            self._filling = asyncio.ensure_future(self._filled())

    async def _filled(self) -> None:
        await asyncio.sleep(self._after_s)
        with suppress(OSError):  # then a child is started on demand, or reports why not
            while len(self._spares) < self._wanted:
                self._spares.append(await _started())


async def _started() -> Process:
    """Start a child, which waits for its first message. Raises OSError."""
    ours, theirs = socket.socketpair()
    # The child inherits this, until it can ignore them: it loads code first.
    blocked = IGNORED_SIGNALS - signal.pthread_sigmask(signal.SIG_BLOCK, IGNORED_SIGNALS)
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # the present folder may hold modules that are not ours
            "-m",
            "worker.engine.child",
            str(theirs.fileno()),
            pass_fds=[theirs.fileno()],
            stdin=asyncio.subprocess.DEVNULL,
            env=environment(),
        )
    except BaseException:
        ours.close()
        raise
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, blocked)
        theirs.close()
    return Process(process, Pipe(ours))


async def _end(one: Process) -> None:
    one.kill()
    await one.wait()
    one.pipe.close()


def environment() -> dict[str, str]:
    """Return our environment with our module path, and without library threads."""
    import worker  # noqa: PLC0415

    here = os.path.dirname(os.path.dirname(os.path.abspath(worker.__file__)))
    before = os.environ.get("PYTHONPATH")
    path = (
        here
        if not before
        else before
        if here in before.split(os.pathsep)
        else f"{here}{os.pathsep}{before}"
    )
    return {**ENVIRONMENT, **os.environ, "PYTHONPATH": path}

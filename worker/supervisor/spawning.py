"""Children as processes of this machine: spawned, never forked from what has threads."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ripple.control.environment import ENVIRONMENT
from worker.pipe import DUMP_SIGNAL, Pipe

if TYPE_CHECKING:
    from collections.abc import Callable

SPARES_AFTER_S = 5.0


class Process:
    """A child; see Engine."""

    def __init__(self, process: asyncio.subprocess.Process, pipe: Pipe) -> None:
        self.pipe = pipe
        self._process = process
        self._handle = _handle_of(process.pid)

    @property
    def pid(self) -> int:
        """Its number."""
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
        # Not by asyncio, which looks first whether it has ended, and so takes how from who waits.
        with suppress(ProcessLookupError):
            if self._handle is not None:
                signal.pidfd_send_signal(self._handle, number)
            elif self._process.returncode is None:
                os.kill(self._process.pid, number)


def _handle_of(pid: int) -> int | None:
    """Return what means this process even after another one has its number, where there is such."""
    with suppress(AttributeError, OSError):
        return os.pidfd_open(pid)
    return None


class Spawner:
    """Starts children, each of which is told first who it is.

    Spares are started before anybody needs them, and wait for that: loading what a child needs
    takes longer than all else until the partitions of one that died live again. Invariant: a spare
    was told nothing yet, so it may become the child of any slot.
    """

    def __init__(
        self,
        begin: Callable[[int], dict[str, Any]],
        *,
        spares: int = 0,
        spares_after_s: float = SPARES_AFTER_S,
    ) -> None:
        """Take what makes the first message for a slot.

        spares: how many wait; they are started so long after one was asked for.
        """
        self._begin = begin
        self._wanted, self._after_s = spares, spares_after_s
        self._spares: deque[Process] = deque()
        self._filling: asyncio.Task[None] | None = None

    async def __call__(self, slot: int) -> Process:
        """Return a child of a slot. Raises OSError."""
        one = await self._spare() or await _started()
        self._fill()
        with suppress(ConnectionError):  # how it ended, ``wait`` tells
            await one.pipe.write(self._begin(slot))
        return one

    @property
    def spares(self) -> tuple[int, ...]:
        """The numbers of the processes that wait."""
        return tuple(one.pid for one in self._spares)

    async def close(self) -> None:
        """Have no spares any more."""
        if self._filling is not None:
            self._filling.cancel()
            await asyncio.wait([self._filling])
        while self._spares:
            await _end(self._spares.popleft())

    async def _spare(self) -> Process | None:
        """Return the oldest spare that lives."""
        while self._spares:
            one = self._spares.popleft()
            if one.is_alive:
                return one
            await _end(one)
        return None

    def _fill(self) -> None:
        """Start what is missing, later: who was asked for has the processors first."""
        if self._wanted and (self._filling is None or self._filling.done()):
            self._filling = asyncio.ensure_future(self._filled())

    async def _filled(self) -> None:
        await asyncio.sleep(self._after_s)
        with suppress(OSError):  # then a child is started when it is needed, or that says why not
            while len(self._spares) < self._wanted:
                self._spares.append(await _started())


async def _started() -> Process:
    """Start a child, which waits for its first message. Raises OSError."""
    ours, theirs = socket.socketpair()
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # what lies in the folder that it was started in is none of ours
            "-m",
            "worker.engine.child",
            str(theirs.fileno()),
            pass_fds=[theirs.fileno()],
            stdin=asyncio.subprocess.DEVNULL,
            env=_environment(),
        )
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    return Process(process, Pipe(ours))


async def _end(one: Process) -> None:
    one.kill()
    await one.wait()
    one.pipe.close()


def _environment() -> dict[str, str]:
    """Return our environment with the modules that we have found, and no threads of libraries."""
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

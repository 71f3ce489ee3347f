"""Children as processes of this machine: spawned, never forked from what has threads."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from worker.child import DUMP_SIGNAL
from worker.pipe import Pipe

if TYPE_CHECKING:
    from collections.abc import Callable


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
    """Starts children, each of which is told first who it is."""

    def __init__(self, begin: Callable[[int], dict[str, Any]]) -> None:
        """Take what makes the first message for a slot."""
        self._begin = begin

    async def __call__(self, slot: int) -> Process:
        """Start a child. Raises OSError."""
        ours, theirs = socket.socketpair()
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",  # what lies in the folder that it was started in is none of ours
                "-m",
                "worker.child",
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
        pipe = Pipe(ours)
        one = Process(process, pipe)
        with suppress(ConnectionError):  # how it ended, ``wait`` tells
            await pipe.write(self._begin(slot))
        return one


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
    return {**os.environ, "PYTHONPATH": path}

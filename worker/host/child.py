"""The worker of one pipeline as a child process: its start, its restarts, its graceful end.

Invariant: at most one process at a time; the next one starts after the end of the previous one.
"""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress
from typing import TYPE_CHECKING

from ripple.world.pauses import Pauses
from worker.supervisor.spawning import environment

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import Awaitable, Callable, Sequence

    from ripple.control.assignment.pipelines import Hosted
    from ripple.world.ports import Clock

PAUSE_MIN_S = 1.0
PAUSE_MAX_S = 30.0
STEADY_S = 10.0
NS = 1_000_000_000


class Child:
    """The worker of one pipeline here."""

    def __init__(
        self,
        name: str,
        command: Callable[[Hosted], Awaitable[Sequence[str]]],
        clock: Clock,
        say: Callable[[str], None],
        *,
        end_s: float,
    ) -> None:
        """Start nothing yet.

        command: returns the command line of a start. end_s: the time limit of a graceful end.
        """
        self.name = name
        self.hosted: Hosted | None = None  # the wanted pipeline; None: no process
        self._problem = ""  # the last unexpected exit
        self._since_ns = 0  # the start of the running process
        self.starts = 0
        self._command, self._clock, self._say = command, clock, say
        self._end_s = end_s
        self._process: Process | None = None
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def pid(self) -> int:
        """The id of the running process, 0 without one."""
        return 0 if self._process is None else self._process.pid

    @property
    def problem(self) -> str:
        """The last unexpected exit, until the next process has run for a while; "" for none."""
        lived_ns = self._clock.monotonic_ns() - self._since_ns
        return "" if self.pid and lived_ns > STEADY_S * NS else self._problem

    @property
    def is_over(self) -> bool:
        """Whether it has ended for good."""
        return self._task is not None and self._task.done()

    def want(self, hosted: Hosted | None) -> None:
        """Run this pipeline from now on; None, or a stopped pipeline, ends the process."""
        if hosted == self.hosted and self._task is not None:
            return
        self.hosted = hosted
        self._changed.set()
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._live())

    async def ended(self) -> None:
        """Wait for the end of the last process. Raises unexpected errors."""
        if self._task is not None:
            await self._task

    async def _live(self) -> None:
        pauses = self._pauses()
        while self.hosted is not None:
            self._changed.clear()
            hosted = self.hosted
            if hosted.is_stopped:
                await self._changed.wait()
                continue
            pauses.begin()
            how = await self._run(hosted, pauses)
            if hosted is self.hosted:
                pause_s = pauses.next_s()
                self._problem = f"it has ended {how}"
                self._say(f"{self.name}: its worker has ended {how}; starts again in {pause_s:g} s")
                with suppress(TimeoutError):
                    async with asyncio.timeout(pause_s):
                        await self._changed.wait()
            else:
                self._problem = ""
                pauses = self._pauses()
                self._say(f"{self.name}: its worker has ended {how}, as it should")

    async def _run(self, hosted: Hosted, pauses: Pauses) -> str:
        """Run one process to its end; return its kind of exit, as text."""
        try:
            self._process = await started(await self._command(hosted))
        except OSError as error:
            return f"before it began: {error}"
        process = self._process
        pauses.works()
        self.starts += 1
        self._since_ns = self._clock.monotonic_ns()
        self._say(f"{self.name}: its worker is process {process.pid}")
        ending = asyncio.ensure_future(process.wait())
        changed = asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait([ending, changed], return_when=asyncio.FIRST_COMPLETED)
            if not ending.done():
                _signal(process, signal.SIGTERM)
                await asyncio.wait([ending], timeout=self._end_s)
            if not ending.done():
                self._say(f"{self.name}: its worker has not ended in {self._end_s:g} s: killed")
        finally:
            changed.cancel()
            if not ending.done():
                _signal(process, signal.SIGKILL)
            code = await ending
            self._process = None
        return f"by {signal.Signals(-code).name}" if code < 0 else f"with exit code {code}"

    def _pauses(self) -> Pauses:
        return Pauses(self._clock.monotonic_ns, PAUSE_MIN_S, PAUSE_MAX_S, steady_s=STEADY_S)


async def started(command: Sequence[str]) -> Process:
    """Start a process in its own session, so that Ctrl+C reaches the host alone.

    The death of the host ends its standard input. Raises OSError.
    """
    return await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        start_new_session=True,
        env=environment(),
    )


def _signal(process: Process, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        process.send_signal(number)

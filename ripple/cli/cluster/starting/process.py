"""One process of the cluster: what it says is passed on, and when it dies it is started again."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress

from ripple.cli.cluster.starting.plan import Planned
from ripple.world.pauses import Pauses

PAUSE_MIN_S = 0.5
PAUSE_MAX_S = 30.0
# A process that lived for so long starts anew with the shortest pause.
STEADY_S = 10.0
# One that refuses to start so often, and has done nothing else, will not start. What has worked
# before refuses for a reason that passes, such as brokers that are away.
REFUSALS_MAX = 3
REFUSED_WITHIN_S = 30.0
LINE_BYTES_MAX = 1 << 16


class WillNotStartError(Exception):
    """A process has only ever refused to start; what it said was passed on."""


class Process:
    """A process that lives until somebody ends it.

    It has a session of its own, so that Ctrl+C reaches who started it alone, and a standard input
    that nobody writes to, whose end tells it that we are gone.
    """

    def __init__(self, planned: Planned, say: Callable[[str, str], None]) -> None:
        """Start nothing yet. say: takes a process's name and a line."""
        self.name = planned.name
        self.is_worker = planned.is_worker
        self.starts = 0
        self._command = planned.command
        self._say = say
        self._running: asyncio.subprocess.Process | None = None
        self._is_ending = False

    @property
    def pid(self) -> int:
        """The number of the process that runs now, 0 where none does."""
        running = self._running
        return 0 if running is None or running.returncode is not None else running.pid

    async def live(self) -> None:
        """Start it again and again until ``end`` was called. Raises WillNotStartError."""
        pauses = Pauses(time.monotonic_ns, PAUSE_MIN_S, PAUSE_MAX_S, steady_s=STEADY_S)
        refusals = 0
        while not self._is_ending:
            began_s = time.monotonic()
            pauses.begin()
            pauses.works()
            code = await self._run()
            if self._is_ending:
                return
            lived_s = time.monotonic() - began_s
            refusals += code == 1 and lived_s < REFUSED_WITHIN_S
            if refusals == self.starts and refusals >= REFUSALS_MAX:
                raise WillNotStartError(f"{self.name} does not start: see what it says")
            pause_s = pauses.next_s()
            self._say(self.name, f"{_ended(code)}; it is started again in {pause_s:g} s")
            await self._pause(pause_s)

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Ask it to end, or with SIGKILL make it; it is not started again."""
        self._is_ending = True
        if self._running is not None and self._running.returncode is None:
            with suppress(ProcessLookupError):
                self._running.send_signal(number)

    async def _run(self) -> int:
        self.starts += 1
        self._running = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            limit=LINE_BYTES_MAX,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        self._say(self.name, f"process {self._running.pid}")
        if self._is_ending:  # since it was asked for
            self.end()
        assert self._running.stderr is not None
        passing = asyncio.ensure_future(self._pass_on(self._running.stderr))
        code = await self._running.wait()
        await passing
        return code

    async def _pass_on(self, lines: asyncio.StreamReader) -> None:
        while True:
            try:
                line = await lines.readline()
            except ValueError:  # longer than LINE_BYTES_MAX: the rest of it comes as lines
                continue
            if not line:
                return
            self._say(self.name, line.decode(errors="backslashreplace").rstrip("\n"))

    async def _pause(self, seconds: float) -> None:
        until_s = time.monotonic() + seconds
        while not self._is_ending and time.monotonic() < until_s:
            await asyncio.sleep(min(0.1, seconds))


def _ended(code: int) -> str:
    if code < 0:
        return f"was killed by {signal.Signals(-code).name}"
    return f"has ended with exit code {code}"

"""One process of a local cluster: its log is passed on, and it is restarted when it dies."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress

from ripple.cli.cluster.starting.plan import Planned, taken_port
from ripple.cli.lib.exits import EXIT_FAILURE, EXIT_SCHEMA
from ripple.world.pauses import Pauses

PAUSE_MIN_S = 0.5
PAUSE_MAX_S = 30.0
# After a run of so long, it restarts with the shortest pause.
STEADY_S = 10.0
# The number of refusals after which a process that never worked is given up; for an incompatible
# schema one is enough. A process that worked before may refuse for a temporary reason, such as
# unavailable brokers.
REFUSALS_MAX = 3
REFUSED_WITHIN_S = 30.0
LINE_BYTES_MAX = 1 << 16


class WillNotStartError(Exception):
    """A process has only ever refused to start; its log has the cause."""


class PortTakenError(WillNotStartError):
    """Another process has taken a port of one that has never worked."""


class Process:
    """A process that is restarted until it is told to end.

    It has a session of its own, so that Ctrl+C reaches only its parent, and a standard input
    without data: its end shows that the parent is gone.
    """

    def __init__(
        self, planned: Planned, say: Callable[[str, str], None], *, has_free_ports: bool = False
    ) -> None:
        """Start nothing yet. say: takes a process's name and a line.

        has_free_ports: whether its ports were free ones, and may be replaced.
        """
        self._planned = planned
        self._has_free_ports = has_free_ports
        self.name = planned.name
        self.is_worker = planned.is_worker
        self.starts = 0
        self._say = say
        self._running: asyncio.subprocess.Process | None = None
        self._is_ending = False

    @property
    def pid(self) -> int:
        """The id of the running process, 0 without one."""
        running = self._running
        return 0 if running is None or running.returncode is not None else running.pid

    async def live(self) -> None:
        """Start it again and again until ``end`` was called.

        Raises WillNotStartError and PortTakenError.
        """
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
            refusals += code in (EXIT_FAILURE, EXIT_SCHEMA) and lived_s < REFUSED_WITHIN_S
            if refusals == self.starts:
                self._check_ports()
                if refusals >= REFUSALS_MAX or code == EXIT_SCHEMA:
                    raise WillNotStartError(f"{self.name} does not start: see its log above")
            pause_s = pauses.next_s()
            self._say(self.name, f"{_ended(code)}; restarting in {pause_s:g} s")
            await self._pause(pause_s)

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Signal it to end, with SIGKILL at once; it is not restarted."""
        self._is_ending = True
        if self._running is not None and self._running.returncode is None:
            with suppress(ProcessLookupError):
                self._running.send_signal(number)

    def _check_ports(self) -> None:
        """Raise PortTakenError if another process has one of its free ports."""
        port = taken_port(self._planned) if self._has_free_ports else None
        if port is not None:
            raise PortTakenError(f"{self.name}: port {port} was taken meanwhile")

    async def _run(self) -> int:
        self.starts += 1
        self._running = await asyncio.create_subprocess_exec(
            *self._planned.command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
            limit=LINE_BYTES_MAX,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        self._say(self.name, f"process {self._running.pid}")
        if self._is_ending:  # told to end meanwhile
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
    return f"exited with code {code}"

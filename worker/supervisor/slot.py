"""A slot for one of a worker's processes: restarted when it ends, killed when its loop hangs."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from ripple.control.assignment import Report
from ripple.control.telemetry.samples import Samples
from ripple.world.pauses import Pauses
from worker.messages import FROM_ENGINE, TO_ENGINE, Cannot, Inspect, Stop

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.world.ports import Clock
    from worker.backpressure import Queue
    from worker.health import TaskHealth
    from worker.messages import FromEngine, ToEngine
    from worker.pipe import Channel

PAUSE_MIN_S = 0.1
PAUSE_MAX_S = 30.0
# One that had a live partition for so long, and did not only load code, is able to work.
STEADY_S = 5.0
WATCH_S = 1.0
START_S = 60.0  # a process that has not reported yet is loading code
DUMP_S = 1.0
NS = 1_000_000_000


class Engine(Protocol):
    """A process that was started."""

    @property
    def pipe(self) -> Channel:
        """The pipe to it."""
        ...

    async def wait(self) -> str:
        """Wait until it has ended; return how, in words."""
        ...

    def dump(self) -> None:
        """Dump the stacks of its threads, also of a stuck process."""
        ...

    def kill(self) -> None:
        """Kill it at once; it may have ended."""
        ...


class Spawn(Protocol):
    """Starts the process of a slot. Raises OSError."""

    async def __call__(self, slot: int) -> Engine:
        """Start it."""
        ...


class Slot:
    """The processes of a slot, one after the other.

    ``start`` counts them, from 0. The last report of the present process is there as long as it
    lives.
    """

    def __init__(
        self,
        number: int,
        spawn: Spawn,
        clock: Clock,
        *,
        hung_after_s: float,
        changed: Callable[[], None],
        exited: Callable[[int, int, str, bool], None],
        say: Callable[[str], None],
    ) -> None:
        """Start nothing yet.

        changed: called on each new report. exited: called with number and start when a process has
        ended unasked, with how, and whether it had reported that it cannot work at all.
        """
        self.number = number
        self.start = 0
        self.is_alive = False
        self.report: Report | None = None
        self.standings: dict[int, TaskHealth] = {}
        self.queues: tuple[Queue, ...] = ()
        self._measured = Samples()  # of the present process
        self._ended = Samples()  # of earlier ones
        self._spawn = spawn
        self._clock = clock
        self._hung_after_s = hung_after_s
        self._changed = changed
        self._exited = exited
        self._say = say
        self._engine: Engine | None = None
        self._pending: dict[type, ToEngine] = {}
        self._has_pending = asyncio.Event()
        self._stopping = asyncio.Event()
        self._heard_ns = 0
        self._pauses = Pauses(clock.monotonic_ns, PAUSE_MIN_S, PAUSE_MAX_S, steady_s=STEADY_S)
        self._asked: list[asyncio.Future[list[Any]]] = []
        self._cannot = ""  # why the present process cannot work at all
        self.greeting: Callable[[], list[ToEngine]] = list
        """The first message to a new process."""

    @property
    def samples(self) -> Samples:
        """The samples of all its processes, one after the other; gauges of the present one."""
        found = Samples()
        found.include(self._ended)
        found.include(self._measured)
        return found

    def send(self, message: ToEngine) -> None:
        """Send a message to the process, if there is one; only the newest of a kind counts."""
        self._pending[type(message)] = message
        self._has_pending.set()

    async def inspected(self) -> list[Any]:
        """Ask for the live graphs; return (partition, its graph) each, [] if the process ends."""
        if not self.is_alive:
            return []
        asked: asyncio.Future[list[Any]] = asyncio.get_running_loop().create_future()
        self._asked.append(asked)
        self.send(Inspect())
        return await asked

    def _answer(self, inspected: list[Any]) -> None:
        """Answer all pending requests."""
        asked, self._asked = self._asked, []
        for one in asked:
            if not one.done():
                one.set_result(inspected)

    def stop(self) -> None:
        """Stop the process gracefully; none follows."""
        self._stopping.set()
        self.send(Stop())

    def kill(self) -> None:
        """Kill the process at once; none follows."""
        self._stopping.set()
        if self._engine is not None:
            self._engine.kill()

    async def run(self) -> None:
        """Run processes until told to stop; cancellation kills the present one."""
        while not self._stopping.is_set():
            self._pauses.begin()
            try:
                how = await self._live()
            except OSError as error:
                how = f"it could not be started: {error}"
            if self._stopping.is_set():
                return
            why, self._cannot = self._cannot, ""
            self._exited(self.number, self.start, why or how, bool(why))
            self.start += 1
            self._changed()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._pauses.next_s()):
                    await self._stopping.wait()

    async def _live(self) -> str:
        """Run one process from its start to its end; return how it ended."""
        self._engine = engine = await self._spawn(self.number)
        if self._stopping.is_set():
            engine.kill()  # a stale message for the process before
        self._heard_ns = self._clock.monotonic_ns()
        self.is_alive = True
        tasks = [
            asyncio.ensure_future(work)
            for work in (self._read(engine), self._write(engine), self._watch(engine))
        ]
        try:
            return await engine.wait()
        finally:
            engine.kill()
            self._engine = None
            self.is_alive = False
            self._answer([])
            self.report, self.standings = None, {}
            self.queues = ()
            self._ended.include(self._measured.lasting())
            self._measured = Samples()
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            engine.pipe.close()
            self._changed()

    async def _read(self, engine: Engine) -> None:
        try:
            while (data := await engine.pipe.read()) is not None:
                self._heard_ns = self._clock.monotonic_ns()
                self._take(FROM_ENGINE.from_bytes(data))
        except Exception as error:
            self._say(f"process {self.number} has sent an invalid message: {error!r}")
        engine.kill()  # it does not read any more, or sends invalid messages

    def _take(self, message: FromEngine) -> None:
        if isinstance(message, Cannot):
            self._cannot = message.why
            return
        self.report, self.standings = message.report, dict(message.standings)
        if any(one.has_state for one in self.standings.values()):
            self._pauses.works()
        self.queues = message.queues
        self._measured = message.measures or self._measured
        if message.inspected is not None:
            self._answer(message.inspected)
        self._changed()

    async def _write(self, engine: Engine) -> None:
        try:
            for message in self.greeting():
                await engine.pipe.write(TO_ENGINE.to_bytes(message))
            while True:
                await self._has_pending.wait()
                self._has_pending.clear()
                while self._pending:
                    message = self._pending.pop(next(iter(self._pending)))
                    await engine.pipe.write(TO_ENGINE.to_bytes(message))
        except ConnectionError:
            return  # ``wait`` tells how it ended
        except Exception as error:  # it would never hear of another version
            self._say(f"process {self.number} cannot be sent a message: {error!r}")
            engine.kill()

    async def _watch(self, engine: Engine) -> None:
        """Kill a process that reports nothing for too long, after it has dumped its stacks."""
        while True:
            turn_ns = self._clock.monotonic_ns()
            await self._clock.sleep(WATCH_S)
            now_ns = self._clock.monotonic_ns()
            if now_ns - turn_ns > 2 * WATCH_S * NS:
                self._heard_ns = now_ns  # suspended itself: read pending reports first
            silent_s = (now_ns - self._heard_ns) / NS
            patience_s = self._hung_after_s
            if self.report is None:
                patience_s = max(patience_s, START_S)
            if silent_s > patience_s:
                self._say(
                    f"process {self.number} has been hung for {silent_s:.0f} s: it dumps its "
                    "stacks, unless it is stopped (SIGSTOP), and is killed"
                )
                engine.dump()
                await self._clock.sleep(DUMP_S)
                engine.kill()
                return

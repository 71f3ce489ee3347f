"""Runs the decisions of one coordinator: events in, instructions carried out.

    tick, conversations, calls, other replicas, the store -> step -> store, conversations, answers

Nothing here decides. The store is used by one task for the chain and one for each direction of
views, so that none delays another; repeated requests are merged.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from coordinator.decisions import events as ev
from coordinator.decisions import instructions as ins
from coordinator.decisions.state import Coordinator
from coordinator.decisions.status import Status, status_of
from coordinator.service.archive import Archive
from coordinator.service.peers import Peer
from coordinator.service.sessions import WorkerSessions
from coordinator.service.worker_lines import WorkerLines
from ripple.control.rpc import membership_messages as msg
from ripple.core.errors import RippleError
from ripple.storage.store import RetryingStore, RetrySettings
from ripple.world.control import RefusedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from coordinator.decisions.commands import Command
    from coordinator.decisions.limits import Limits
    from coordinator.decisions.views import View
    from ripple.control.assignment import Assignment
    from ripple.world.ports import World
    from ripple.world.tls import Tls

TICK_S = 0.25
END_S = 2.0
# Proposals by other replicas are not announced here: the chain is read so often without a hint.
READ_S = 5.0
# Two attempts: a third would only be older. Failed requests are made again.
STORE = RetrySettings(attempts_max=2, attempt_s=5.0, deadline_s=12.0)

_PROPOSING = "next version"
_OBJECT_NUMBERS = re.compile(r"\d{9,}")


class Shell:
    """One coordinator. ``say`` logs lines for people."""

    def __init__(
        self,
        world: World,
        limits: Limits,
        *,
        peers: Sequence[str] = (),
        tls: Tls | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        assert world.store is not None
        self.limits = limits
        self._clock, self._random = world.clock, world.random
        self._say = say
        self.replica = world.random.bytes(8).hex()
        store = RetryingStore(world.store, world.clock, world.random, STORE)
        self._archive = Archive(store, world.clock, self.replica, guards=world.guards)
        self.state = Coordinator(
            self.replica, world.clock.monotonic_ns(), limits, guards=world.guards
        )
        self.sessions = WorkerSessions()
        self.worker_lines = WorkerLines()
        self._peers = [Peer(world, address, tls, self) for address in peers]
        self._answers: dict[str, asyncio.Future[int]] = {}
        self._wanted = _Wanted()
        self._problems: dict[str, str] = {}
        self._failing: dict[str, str] = {}  # operations on the store, and why they fail
        self._version_said = 0
        self._refused: set[str] = set()  # refusals since the newest version

    # Incoming.

    def handle(self, event: ev.Event) -> None:
        """Take an event, and carry out or begin the instructions."""
        if isinstance(event, msg.Heartbeat):
            self.worker_lines.take(event.who[0], event.report.lines)
        for instruction in self.state.step(event, self._clock.monotonic_ns()):
            self._do(instruction)

    async def command(self, command: Command) -> int:
        """Return the version as of which a command is done. Raises RefusedError."""
        request = self._random.bytes(8).hex()
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._answers[request] = answer
        try:
            self.handle(ev.Commanded(request, command))
            return await answer
        finally:
            del self._answers[request]

    def known_elsewhere(self, version: int) -> None:
        """Note that a newer version is known elsewhere."""
        if version > self.state.newest_number:
            self._wanted.read_chain()

    @property
    def view(self) -> View:
        """The own view, for others."""
        return self.state.view(self._clock.monotonic_ns())

    @property
    def is_ready(self) -> bool:
        """Whether it has read the chain."""
        return self.state.now is not None

    def concern(self, what: str, why: str) -> None:
        """Show a problem of this process to people, "" once it is over."""
        if why:
            self._failing[what] = why
        else:
            self._failing.pop(what, None)

    @property
    def status(self) -> Status | None:
        """Its status; None before it has read the chain."""
        status = status_of(self.state, self._clock.monotonic_ns())
        if status is None or not self._failing:
            return status
        failing = (f"{what}: {why}" for what, why in sorted(self._failing.items()))
        return replace(status, problems=(*status.problems, *failing))

    async def run(self) -> None:
        """Work until cancelled."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._tick())
                tasks.create_task(self._keep_chain())
                tasks.create_task(self._write_views())
                tasks.create_task(self._read_views())
                for peer in self._peers:
                    tasks.create_task(peer.ask())
        finally:
            for peer in self._peers:
                await peer.close()

    async def end(self) -> None:
        """Remove its traces, if the store answers soon; after ``run``."""
        with suppress(TimeoutError, RippleError):
            async with asyncio.timeout(END_S):
                await self._archive.remove_views()

    async def _tick(self) -> None:
        while True:
            self.handle(ev.Ticked())
            await self._clock.sleep(TICK_S)

    # Instructions.

    def _do(self, instruction: ins.Instruction) -> None:
        match instruction:
            case ins.Propose(version):
                self._wanted.propose(version)
            case ins.ReadChain():
                self._wanted.read_chain()
            case ins.ReadViews():
                self._wanted.views_read.set()
            case ins.WriteView(view):
                self._wanted.view = view
                self._wanted.view_written.set()
            case ins.Answer(request, version, refusal):
                self._answer(request, version, refusal)
            case _:
                self._instruct_workers(instruction)

    def _instruct_workers(self, instruction: ins.Instruction) -> None:
        match instruction:
            case ins.Announce(assignment):
                self._refused.clear()
                if assignment.version:
                    self._say_version(assignment)
                self.sessions.announce(self.state.newest_number)
            case ins.Refuse(nonce, reason):
                self._say_refused(reason)
                self.sessions.send_to_candidate(nonce, msg.Refused(nonce, reason))
            case ins.Postpone(nonce, wait_ms, reason):
                self.sessions.send_to_candidate(nonce, msg.Postponed(nonce, wait_ms, reason))
            case ins.Evict(who, reason):
                self.sessions.send_to_member(who, msg.Evicted(who, reason))
            case ins.TriggerCheckpoint(who):
                self.sessions.send_to_member(who, msg.StoreCheckpoints(who))

    def _answer(self, request: str, version: int | None, refusal: str | None) -> None:
        waiting = self._answers.get(request)
        if waiting is None or waiting.done():
            return  # its caller no longer waits
        if version is None:
            waiting.set_exception(RefusedError(refusal or "refused"))
        else:
            waiting.set_result(version)

    # Work on the store.

    async def _keep_chain(self) -> None:
        """Read the chain at first, on request, and now and then; propose."""
        while True:
            version = self._wanted.take()
            if version is not None:
                await self._try(_PROPOSING, self._propose(version))
            elif self._failing.pop(_PROPOSING, None):
                self._problems.pop(_PROPOSING, None)  # no proposal is wanted any more
            await self._try("store", self._read())
            if version is not None:
                self.handle(ev.ProposalEnded())
            await self._wanted.something(READ_S)

    async def _propose(self, version: Assignment) -> None:
        await self._archive.propose(version)

    async def _read(self) -> None:
        self.handle(await self._archive.read())

    async def _read_views(self) -> None:
        while True:
            await self._wanted.views_read.wait()
            self._wanted.views_read.clear()
            while not await self._try("views", self._look()):
                await self._clock.sleep(READ_S)

    async def _look(self) -> None:
        self.handle(ev.ViewsRead(await self._archive.read_views()))

    async def _write_views(self) -> None:
        while True:
            await self._wanted.view_written.wait()
            self._wanted.view_written.clear()
            while not await self._try("own view", self._show()):
                await self._clock.sleep(READ_S)

    async def _show(self) -> None:
        assert self._wanted.view is not None
        await self._archive.write_view(self._wanted.view)
        self.handle(ev.ViewWritten())

    async def _try(self, what: str, doing: Awaitable[None]) -> bool:
        """Do work that may fail and is then tried again; return whether it was done."""
        try:
            await doing
        except RippleError as error:
            self._failing[what] = str(error)
            self.trouble(what, str(error))
            return False
        self._failing.pop(what, None)
        self.trouble(what, None)
        return True

    # Log.

    def trouble(self, what: str, problem: str | None) -> None:
        """Log when something begins to fail, fails otherwise, or works again.

        The same failure of another object is not logged anew: their names are numbered.
        """
        before = self._problems.pop(what, None)
        if problem is not None:
            self._problems[what] = kind = _OBJECT_NUMBERS.sub("", problem)
            if kind != before:
                self._say(f"{what}: {problem}")
        elif before is not None:
            self._say(f"{what}: works again")

    def _say_refused(self, reason: str) -> None:
        """Log a refusal once a version: a refused worker asks again and again."""
        if reason not in self._refused and len(self._refused) < self.limits.candidates_max:
            self._refused.add(reason)
            self._say(f"refused: {reason}")

    def _say_version(self, version: Assignment) -> None:
        """Log a version once: it may be announced here again."""
        if version.version > self._version_said:
            self._version_said = version.version
            self._say(f"version {version.version}: {version.cause}")


class _Wanted:
    """Requests for work on the store."""

    def __init__(self) -> None:
        self._version: Assignment | None = None
        self._chain = asyncio.Event()
        self.views_read = asyncio.Event()
        self.view_written = asyncio.Event()
        self.view: View | None = None

    def propose(self, version: Assignment) -> None:
        self._version = version
        self._chain.set()

    def read_chain(self) -> None:
        self._chain.set()

    def take(self) -> Assignment | None:
        """Return the version to be proposed, if any, and mark all requests as begun."""
        version, self._version = self._version, None
        self._chain.clear()
        return version

    async def something(self, seconds: float) -> None:
        """Wait until something is requested, or for so long."""
        try:
            async with asyncio.timeout(seconds):
                await self._chain.wait()
        except TimeoutError:
            pass

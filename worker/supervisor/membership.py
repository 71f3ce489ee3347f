"""A worker's membership: joins, sends heartbeats, follows the assignment chain, and leaves.

    beat -> every coordinator: a request to join, or a heartbeat
    hint, or 5 s without -> reads the chain -> heard

Coordinators are only hints; the assignment chain in the store is authoritative for membership and
ownership. Without coordinators the worker continues with the newest version.

Invariants: ``heard`` is called with rising versions; an incarnation that a version lacks never
comes back: a new nonce asks to join.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from ripple.control.rpc import membership_messages as msg
from ripple.core import events
from ripple.core.errors import RippleError
from worker.supervisor.coordinator_link import CoordinatorLink

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from ripple.control.assignment import Assignment, AssignmentChain, Candidate, Report
    from ripple.control.assignment.bounds import Who
    from ripple.control.rpc.membership_messages import CoordinatorMessage, WorkerMessage
    from ripple.storage.fenced import Reading
    from ripple.world.ports import World
    from ripple.world.tls import Tls

HEARTBEAT_INTERVAL_MS = 1_000
READ_S = 5.0  # period, unless every coordinator answers
READ_DEADLINE_S = 10.0
READ_AGAIN_S = 1.0
# After a stop longer than this, the worker may own nothing any more.
LATE_S = 4.0
REFUSED_WAIT_S = 5.0
LEAVE_S = 5.0
# Long enough for a coordinator to restart.
ABANDONED_S = 5.0
NONCE_BYTES = 16
NOBODY = "no cluster yet"  # the mark of a store without a cluster
NS = 1_000_000_000


def _nothing() -> None:
    pass


class Membership:
    """The membership of one worker.

    Args:
        world: its clock, chance and control channel.
        chain: the assignment, to be read.
        coordinators: their addresses; each gets every message.
        candidate: makes the request to join, under a nonce.
        report: the worker's health, called before each heartbeat.
        heard: called with each version, and the worker's incarnation in it (None: no member). An
            error of it ends ``run``.
        tls: certificates and authority; None on one machine only.
        checkpoint: called when a coordinator asks for checkpoints; call ``checkpointed`` then.
        emit: listener of events, for people.
        heartbeat_interval_ms: between heartbeats.
        mark: reads the identity of the store's cluster, "" without a coordinator; None to skip the
            comparison.

    """

    def __init__(  # noqa: PLR0917 - what a worker is made of
        self,
        world: World,
        chain: AssignmentChain,
        coordinators: Sequence[str],
        candidate: Callable[[str], Candidate],
        report: Callable[[], Report],
        heard: Callable[[Assignment, int | None], None],
        *,
        tls: Tls | None = None,
        checkpoint: Callable[[], None] = _nothing,
        emit: events.EventListener = events.no_listener,
        heartbeat_interval_ms: int = HEARTBEAT_INTERVAL_MS,
        mark: Callable[[], Awaitable[str]] | None = None,
    ) -> None:
        self._clock, self._random = world.clock, world.random
        self._guards = world.guards
        self._chain = chain
        self._candidate, self._report, self._heard = candidate, report, heard
        self._checkpoint, self._emit = checkpoint, emit
        self._read_mark = mark
        self._mark = ""
        self._interval_s = heartbeat_interval_ms / 1000
        self._links = [
            CoordinatorLink(
                world,
                address,
                tls,
                beat=self._beat,
                take=self._take,
                emit=emit,
                interval_s=self._interval_s,
            )
            for address in coordinators
        ]
        self._nonce = self._new_nonce()
        self._id = candidate(self._nonce).id
        self._newest: Assignment | None = None
        self._newest_number = 0  # of the newest version seen, readable or not
        self._incarnation: int | None = None
        self._turn_ns = world.clock.monotonic_ns()
        self._doubts = self._settled = 0  # suspensions; the count when it was last confirmed
        self._announced: int | None = None  # the newest that coordinators know, since it woke
        self._asks_again_ns = 0
        self._draining: str | None = None
        self._is_leaving = False
        self._is_unread = ""
        self._is_elsewhere = False  # whether coordinators know versions that its store lacks
        self._hint = asyncio.Event()
        self._changed = asyncio.Event()

    @property
    def incarnation(self) -> int | None:
        """The version that let this worker in, None while it is no member."""
        return self._incarnation

    async def run(self) -> None:
        """Run until cancelled."""
        for link in self._links:
            link.connect()
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._follow())
                tasks.create_task(self._keep_beating())
                for link in self._links:
                    tasks.create_task(link.run())
        finally:
            for link in self._links:
                await link.close()

    async def drain(self, reason: str) -> None:
        """Ask that the partitions move away, until a version says that they do.

        A worker that is no member has none, and no longer asks to join.
        """
        self._draining = reason
        self._say_beats()
        while self._incarnation is not None and not self._is_drained:
            await self._next_version()

    async def abandoned(self) -> None:
        """Wait until no coordinator has answered for long: the partitions will not be moved."""
        answered_ns = self._clock.monotonic_ns()
        while self._clock.monotonic_ns() - answered_ns < ABANDONED_S * NS:
            await self._clock.sleep(self._interval_s)
            if any(link.answers for link in self._links):
                answered_ns = self._clock.monotonic_ns()

    async def leave(self) -> None:
        """Report that it has left, until a version lacks this worker or no coordinator answers."""
        self._is_leaving = True
        self._say_beats()
        with suppress(TimeoutError):
            async with asyncio.timeout(LEAVE_S):
                while self._incarnation is not None:
                    await self._next_version()

    def exited(self, slot: int, start: int) -> None:
        """Report that the process in a slot, in its ``start``-th start from 0, has ended."""
        if self._incarnation is not None:
            self._say(msg.Exited((self._id, self._incarnation), slot, start))

    def checkpointed(self) -> None:
        """Report that checkpoints were stored."""
        if self._incarnation is not None:
            self._say(msg.Checkpointed((self._id, self._incarnation)))

    # Sending.

    async def _keep_beating(self) -> None:
        """Send heartbeats periodically, without waiting for the store.

        A worker that was suspended may have been evicted: it does not speak as a member until it
        has read the chain, or coordinators that have answered since know no version that it has not
        read.
        """
        self._turn_ns = self._clock.monotonic_ns()
        while True:
            if self._is_late:
                self._doubts += 1
                self._announced = None
                self._hint.set()
            elif self._announced is not None and self._announced <= self._newest_number:
                self._settled = self._doubts
            self._turn_ns = self._clock.monotonic_ns()
            self._say_beats()
            await self._clock.sleep(self._interval_s)

    @property
    def _is_late(self) -> bool:
        """Whether this process was suspended, and has not run since."""
        late_ns = self._clock.monotonic_ns() - self._turn_ns - self._interval_s * NS
        return late_ns > LATE_S * NS and self._guards("late_reads")

    def _say_beats(self) -> None:
        said = self._beat()
        for link in self._links:
            for one in said:
                link.say(one)

    def _beat(self) -> list[WorkerMessage]:
        """Return the present heartbeat."""
        if self._is_late or self._settled < self._doubts:
            return [msg.Present()]
        if self._incarnation is None:
            is_silent = self._is_leaving or self._draining is not None
            # A worker of another store is told so by the coordinators' refusal.
            is_unsure = self._read_mark is not None and not self._mark
            is_silent |= is_unsure or (self._is_elsewhere and self._read_mark is None)
            if is_silent or self._clock.monotonic_ns() < self._asks_again_ns:
                return [msg.Present()]
            return [msg.Register(replace(self._candidate(self._nonce), store=self._mark))]
        who = (self._id, self._incarnation)
        if self._is_leaving:
            return [msg.Left(who)]
        beat = msg.Heartbeat(who, self._report())
        if self._draining is not None and not self._is_drained:
            return [beat, msg.Draining(who, self._draining)]
        return [beat]

    def _say(self, said: WorkerMessage) -> None:
        for link in self._links:
            link.say(said)

    @property
    def _is_drained(self) -> bool:
        return self._newest is not None and self._newest.by_id[self._id].is_leaving

    # Receiving.

    def _take(self, message: CoordinatorMessage, address: str) -> None:
        """Handle a coordinator's hint."""
        match message:
            case msg.Announced(version):
                self._announced = max(version, self._announced or 0)
                is_unsure = self._read_mark is not None and not self._mark
                if version > self._newest_number or is_unsure:
                    self._hint.set()
            case msg.Evicted(who):
                if self._is_me(who):
                    self._hint.set()
            case msg.StoreCheckpoints(who):
                if self._is_me(who):
                    self._checkpoint()
            case msg.Refused(nonce, reason):
                why = events.JoinRefused(address, reason)
                self._put_off(nonce, REFUSED_WAIT_S, why)
            case msg.Postponed(nonce, wait_ms, reason):
                self._put_off(nonce, wait_ms / 1000, events.JoinPostponed(address, wait_ms, reason))

    def _is_me(self, who: Who) -> bool:
        return who == (self._id, self._incarnation)

    def _put_off(self, nonce: str, seconds: float, why: events.Event) -> None:
        """Delay the next request to join by so long."""
        if nonce != self._nonce:
            return
        now_ns = self._clock.monotonic_ns()
        if now_ns >= self._asks_again_ns:
            self._emit(why)
        if self._mark == NOBODY:
            self._hint.set()
        self._asks_again_ns = max(self._asks_again_ns, now_ns + round(seconds * NS))

    # Reading.

    async def _follow(self) -> None:
        """Read the chain on a hint, and every few seconds while a coordinator is silent."""
        while True:
            if not await self._read():
                await self._clock.sleep(READ_AGAIN_S)
                continue
            while not await self._is_hinted() and all(link.answers for link in self._links):
                pass

    async def _is_hinted(self) -> bool:
        """Wait for a hint; return False if none came for long."""
        with suppress(TimeoutError):
            async with asyncio.timeout(READ_S):
                await self._hint.wait()
        return self._hint.is_set()

    async def _read(self) -> bool:
        """Read the chain, and notify its newest version; return whether it could be read."""
        self._hint.clear()
        doubts, announced = self._doubts, self._announced
        try:
            async with asyncio.timeout(READ_DEADLINE_S):
                reading = await self._chain.newest()
                await self._look_whose(has_coordinator=announced is not None)
        except TimeoutError:
            problem = f"the store does not answer in {READ_DEADLINE_S} s"
        except RippleError as error:
            problem = str(error)
        else:
            self._settled = max(self._settled, doubts)
            self._is_elsewhere = reading.newest_number < (announced or 0)
            self._take_version(reading)
            if not self._is_elsewhere:
                self._is_unread = ""
                return True
            problem = (
                f"a coordinator knows version {announced}, the newest in this worker's store is "
                f"{reading.newest_number or 'none'}: is it the coordinators' store?"
            )
        if problem != self._is_unread:
            self._is_unread = problem
            self._emit(events.AssignmentUnread(problem))
        return False

    async def _look_whose(self, *, has_coordinator: bool) -> None:
        """Read the identity of the store's cluster until it is there.

        has_coordinator: whether one has answered before; it has then written its identity.
        """
        if self._read_mark is None or self._mark not in {"", NOBODY}:
            return
        self._mark = await self._read_mark() or (NOBODY if has_coordinator else "")

    def _take_version(self, reading: Reading[Assignment]) -> None:
        self._newest_number = max(self._newest_number, reading.newest_number)
        version = reading.entry.content if reading.entry is not None else None
        if version is None or (
            self._newest is not None and version.version <= self._newest.version
        ):
            return
        before = self._incarnation
        member = version.by_id.get(self._id)
        is_mine = member is not None and member.nonce == self._nonce
        self._newest = version
        self._incarnation = member.incarnation if member is not None and is_mine else None
        if before is None and self._incarnation is not None:
            self._emit(events.Joined(self._id, self._incarnation))
        elif before is not None and self._incarnation is None:
            self._emit(events.Evicted(self._id, before, version.version, version.cause))
            self._nonce = self._new_nonce()
        self._heard(version, self._incarnation)
        self._changed.set()
        self._changed = asyncio.Event()
        if self._incarnation != before:
            self._say_beats()  # at once, without delaying others

    async def _next_version(self) -> None:
        await self._changed.wait()

    def _new_nonce(self) -> str:
        return self._random.bytes(NONCE_BYTES).hex()

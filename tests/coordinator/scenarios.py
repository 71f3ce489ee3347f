"""Two coordinators over one store that fails, with workers of which each hears other ones."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from coordinator.decisions import events as ev
from coordinator.decisions import instructions as ins
from coordinator.decisions.limits import Limits
from coordinator.decisions.state import Coordinator
from ripple.control.assignment import (
    Assignment,
    AssignmentChain,
    Follower,
    Phase,
    Report,
    worker_of,
)
from ripple.control.assignment.rules import check_follows
from ripple.control.rpc import membership_messages as msg
from ripple.world import StoreError
from tests.control.assignment.examples import candidate

if TYPE_CHECKING:
    from ripple.storage.fenced import Reading
    from ripple.testing import SimWorld

LIMITS = Limits(partitions=6)
WORKERS = ("w0", "w1", "w2")
TICK_SECONDS = 0.25
HEALED_TICKS = 4 * 30
TICKS_MAX = 4 * 400
RESTED_TICKS = 4 * 20


class Shell:
    """Runs one coordinator: what it is told comes from workers, what it wants is done at once."""

    def __init__(self, world: SimWorld, name: str) -> None:
        nonce = f"{name} {world.effects.life}"
        self._world = world
        self._chain = AssignmentChain(world.store, nonce, versions_kept=2, guards=world.guards)
        self._reading: Reading[Assignment] | None = None
        self.state = Coordinator(nonce, world.clock.monotonic_ns(), LIMITS, guards=world.guards)

    async def handle(self, event: ev.Event) -> None:
        for told in self.state.step(event, self._world.clock.monotonic_ns()):
            match told:
                case ins.Propose(version):
                    await self._propose(version)
                case ins.ReadChain():
                    await self.read()
                case ins.ReadViews():
                    await self.handle(ev.ViewsRead(()))
                case ins.WriteView():
                    await self.handle(ev.ViewWritten())

    async def read(self) -> None:
        try:
            self._reading = await self._chain.newest()
        except StoreError:
            return
        entry = self._reading.entry
        content = entry.content if entry is not None else None
        if content is not None:
            believe(self._world, content)
        await self.handle(ev.ChainRead(content, self._reading.newest_number))

    async def _propose(self, version: Assignment) -> None:
        reading = self._reading
        assert reading is not None
        try:
            is_next = version.version == reading.newest_number + 1
            if is_next and await self._chain.propose(reading, version):
                believe(self._world, version)
                await self._chain.forget(await self._chain.newest())
        except StoreError:
            pass  # it is there or not: the chain tells
        await self.read()
        await self.handle(ev.ProposalEnded())


def believe(world: SimWorld, now: Assignment) -> None:
    """Whoever reads a version reads the same, and it may follow the one before."""
    history: dict[int, Assignment] = world.witness.setdefault("history", {})
    was = history.setdefault(now.version, now)
    assert was == now, f"version {now.version} was another"
    if now.version - 1 in history:
        check_follows(history[now.version - 1], now)


class Workers:
    """Workers that do as the newest version says, and tell both coordinators unless cut off."""

    def __init__(self, world: SimWorld) -> None:
        self._world = world
        self._nonces = {worker: f"{worker} {world.effects.life}" for worker in WORKERS}
        # Each worker's way to each coordinator is open or not.
        self._open = {(worker, number): True for worker in WORKERS for number in (0, 1)}
        self._behind: dict[tuple[int, str], int] = {}

    def cut(self) -> None:
        """Open a way that was cut, or cut one that was open."""
        way = sorted(self._open)[self._world.random.below(len(self._open))]
        self._open[way] = not self._open[way]

    def heal(self) -> None:
        self._open = dict.fromkeys(self._open, True)

    async def handle(self, shell: Shell, number: int) -> None:
        for worker in WORKERS:
            if self._open[worker, number]:
                await shell.handle(self._said_by(worker))

    def _said_by(self, worker: str) -> ev.Event:
        history: dict[int, Assignment] = self._world.witness.get("history", {})
        newest = history[max(history)] if history else None
        mine = newest.by_id.get(worker) if newest is not None else None
        if newest is None or mine is None or mine.nonce != self._nonces[worker]:
            return msg.Register(replace(candidate(worker, self._nonces[worker]), inputs=()))
        live = {
            (partition, share.since)
            for partition, share in enumerate(newest.shares)
            if share.owner is not None and worker_of(share.owner) == worker
        }
        followers = tuple(
            Follower(partition, share.next, self._next_behind(partition, share.next))
            for partition, share in enumerate(newest.shares)
            if share.next is not None and worker_of(share.next) == worker
        )
        report = Report(0.5, (0,), frozenset(live), followers)
        return msg.Heartbeat((worker, mine.incarnation), report)

    def _next_behind(self, partition: int, process: str) -> int:
        behind = max(0, self._behind.get((partition, process), 5) - 1)
        self._behind[partition, process] = behind
        return behind


async def two_coordinators(world: SimWorld, seed: int) -> None:
    """They propose as they see it; the cluster comes to rest, whatever the store does."""
    workers = Workers(world)
    shells = [Shell(world, "c0"), Shell(world, "c1")]

    async def run(shell: Shell, number: int) -> None:
        rested, newest = 0, None
        for tick in range(TICKS_MAX):
            await world.clock.sleep(TICK_SECONDS)
            if tick < HEALED_TICKS and world.random.below(80) == 0:
                workers.cut()
            if tick == HEALED_TICKS:
                workers.heal()
            if tick % 4 == 0:
                await workers.handle(shell, number)
            if shell.state.now is None or tick % 20 == 0:
                await shell.read()
            await shell.handle(ev.Ticked())
            rested = rested + 1 if shell.state.now == newest else 0
            newest = shell.state.now
            if rested > RESTED_TICKS < tick - HEALED_TICKS and is_well(newest):
                return
        assert world.effects.landed, f"it does not come to rest: {newest}"
        raise StoreError("gave up", done=None)

    await asyncio.gather(*(run(shell, number) for number, shell in enumerate(shells)))


def is_well(now: Assignment | None) -> bool:
    """Return whether all have as much, and nothing moves."""
    return now is not None and sorted(
        (share.owner or "", share.phase is Phase.OWNED) for share in now.shares
    ) == [(f"{worker}/0", True) for worker in WORKERS for _ in (0, 1)]


async def check(world: SimWorld, seed: int) -> None:
    """What is in the store, is a chain, and nothing that was believed is gone."""
    chain = AssignmentChain(world.store, versions_kept=2)
    assert await chain.problems() == ()
    reading = await chain.newest()
    assert reading.newest_number >= max(world.witness.get("history", {}), default=0)


setattr(two_coordinators, "check", check)  # noqa: B010 - for the explorer, which looks there

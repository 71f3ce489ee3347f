"""Coordinators and members that hold nothing, disturbed at random; healed, they come to rest."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from ripple.control.assignment import Assignment, Member
from ripple.testing import SimCluster, SimWorld, on_cluster
from ripple.testing.sim.chance import Chance
from tests.worker.members import (
    COORDINATORS,
    WORKERS,
    Seen,
    coordinator_of,
    problem_of,
    worker_of_cluster,
)

Program = Callable[[SimWorld], Awaitable[None]]

DISTURBED_S = 90
REST_S = 300
RESTED_S = 10
WELL_S = 30
JOINS_AT_S = 8
FIRST = (*COORDINATORS, *WORKERS[:2])
VERSIONS_A_MINUTE = 62  # one a second, and what chance puts at the ends


@on_cluster
async def members_come_and_go(cluster: SimCluster, seed: int) -> None:
    """One or two coordinators, two or three workers: killed, paused, cut off, switched off."""
    chance = Chance(seed, "members")
    coordinators = COORDINATORS[: 1 + chance.below(2)]
    workers = WORKERS[: 2 + chance.below(2)]
    seen = Seen()
    programs = {
        name: coordinator_of(seen, name, tuple(one for one in coordinators if one != name))
        for name in coordinators
    } | {name: worker_of_cluster(seen, name, coordinators) for name in workers}
    versions, evictions = Versions(seen), Evictions(cluster, seen, coordinators, workers)
    for _ in range(DISTURBED_S):
        start_again(cluster, programs, lambda: chance.below(8) == 0)
        if chance.below(6) == 0:
            disturb(cluster, chance, tuple(programs))
        await asyncio.sleep(1)
        versions.look()
        evictions.look()
    cluster.heal()
    rested = 0
    for _ in range(REST_S):
        start_again(cluster, programs, lambda: True)
        await asyncio.sleep(1)
        versions.look()
        evictions.look()
        rested = rested + 1 if problem_of(seen, workers) is None else 0
        if rested == RESTED_S:
            return
    raise AssertionError(f"it does not come to rest: {problem_of(seen, workers)}")


def start_again(cluster: SimCluster, programs: dict[str, Program], may: Callable[[], bool]) -> None:
    """Start what does not run."""
    for name, program in programs.items():
        if not cluster.host(name).is_running and may():
            cluster.host(name).start(program)


class Versions:
    """When versions came."""

    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self._numbers: list[int] = []

    def look(self) -> None:
        """Bound how many come in a minute; called every second."""
        newest = self._seen.newest
        self._numbers.append(newest.version if newest is not None else 0)
        before = self._numbers[-61:][0]
        assert self._numbers[-1] - before <= VERSIONS_A_MINUTE, "too many versions a minute"


class Evictions:
    """Who was evicted, and whether somebody could have known better.

    A worker that a coordinator has heard well for long, which could say so in the store, is not
    evicted, whoever proposes.
    """

    def __init__(
        self,
        cluster: SimCluster,
        seen: Seen,
        coordinators: tuple[str, ...],
        workers: tuple[str, ...],
    ) -> None:
        self._cluster, self._seen = cluster, seen
        self._ways = [(one, c) for c in coordinators for one in (*workers, "store")]
        self._well_s = dict.fromkeys(self._ways, 0)
        self._lives: dict[str, SimWorld] = {}
        self._landed = 0
        self._version = 0

    def look(self) -> None:
        """Judge the versions that are new; called every second."""
        for number in range(self._version + 1, max(self._seen.history, default=0) + 1):
            before, after = (self._seen.history.get(n) for n in (number - 1, number))
            if before is not None and after is not None:
                self._judge(before, after)
            self._version = number
        has_new_fault = len(self._cluster.effects.landed) != self._landed
        self._landed = len(self._cluster.effects.landed)
        for way in self._ways:
            is_well = not has_new_fault and all(map(self._is_well, way)) and not self._is_cut(*way)
            self._well_s[way] = self._well_s[way] + 1 if is_well else 0

    def _judge(self, before: Assignment, after: Assignment) -> None:
        for member in before.members:
            if after.has(member.id, member.incarnation) or not self._is_alive(member):
                continue
            for one, coordinator in self._ways:
                knows_s = min(self._well_s[one, coordinator], self._well_s["store", coordinator])
                assert one != member.id or knows_s < WELL_S, (
                    f"{one} is evicted by {after.cause}, and {coordinator} has heard it for "
                    f"{knows_s} s"
                )

    def _is_alive(self, member: Member) -> bool:
        """Return whether the process that runs is, or was until now, this incarnation."""
        versions = self._seen.members[member.id].versions
        return any(incarnation == member.incarnation for _, incarnation in versions)

    def _is_well(self, name: str) -> bool:
        """Return whether a machine has run the same process for at least a second."""
        if name == "store":
            return True
        host = self._cluster.host(name)
        is_same = host.is_running and self._lives.get(name) is host.world
        self._lives[name] = host.world
        return is_same and not host.world.loop.paused

    def _is_cut(self, one: str, other: str) -> bool:
        network = self._cluster.network
        return network.is_cut(one, other) or network.is_cut(other, one)


def disturb(cluster: SimCluster, chance: Chance, names: tuple[str, ...]) -> None:
    """Let something happen to a machine, or to the way between two."""
    name = chance.pick(names)
    other = chance.pick([*(one for one in names if one != name), "store"])
    host = cluster.host(name)
    match chance.below(7):
        case 0:
            host.kill()
        case 1:
            host.switch_off()
        case 2:
            host.pause()
        case 3:
            cluster.network.cut_for(name, other, 1 + chance.below(40))
        case 4:
            cluster.network.cut(name, other)
        case 5:
            cluster.network.heal()
        case _:
            for each in names:
                cluster.host(each).resume()


@on_cluster
async def one_more_joins(cluster: SimCluster, seed: int) -> None:
    """Two workers share everything; a third joins, and gets its part by planned moves."""
    seen = Seen()
    programs = {
        name: coordinator_of(seen, name, tuple(one for one in COORDINATORS if one != name))
        for name in COORDINATORS
    } | {name: worker_of_cluster(seen, name) for name in WORKERS}
    for second in range(REST_S):
        wanted = programs if second >= JOINS_AT_S else {n: programs[n] for n in FIRST}
        start_again(cluster, wanted, lambda: True)
        await asyncio.sleep(1)
        if second > JOINS_AT_S and problem_of(seen) is None:
            return
    raise AssertionError(f"it does not come to rest: {problem_of(seen)}")

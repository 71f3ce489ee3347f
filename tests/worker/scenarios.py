"""Coordinators and members that hold nothing, disturbed at random; healed, they come to rest."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from ripple.testing import SimCluster, SimWorld, on_cluster
from ripple.testing.sim_chance import Chance
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
    versions = Versions(seen)
    for _ in range(DISTURBED_S):
        start_again(cluster, programs, lambda: chance.below(8) == 0)
        if chance.below(6) == 0:
            disturb(cluster, chance, tuple(programs))
        await asyncio.sleep(1)
        versions.look()
    cluster.heal()
    rested = 0
    for _ in range(REST_S):
        start_again(cluster, programs, lambda: True)
        await asyncio.sleep(1)
        versions.look()
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

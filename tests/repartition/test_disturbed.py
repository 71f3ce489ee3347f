"""A simulated cluster that divides records anew: outputs do not tell what happened to it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from coordinator.limits import Limits
from ripple.testing import SimCluster, explore, on_cluster
from ripple.testing.sim_disk import CAPACITY_BYTES
from tests.examples import EXAMPLES
from tests.worker.members import COORDINATORS, Seen, address_of, coordinator_of
from tests.worker.processes import (
    DIVIDED,
    PARTITIONS,
    Case,
    new_disk,
    tables_alone,
    tables_of,
)
from tests.worker.simulated import Worker

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.assignment import Assignment

LIMITS = Limits(partitions=PARTITIONS)
LIMIT_S = 300.0
WORKERS = ("w1", "w2", "w3")
EVERYBODY = (*WORKERS, *COORDINATORS)


class Scene:
    """Two coordinators, three workers and the log that all have."""

    def __init__(self, cluster: SimCluster, case: Case) -> None:
        self.cluster = cluster
        self.case = case
        self.disk = new_disk()
        self.seen = Seen()
        addresses = tuple(address_of(one) for one in COORDINATORS)
        self.workers = {name: Worker(name, self.disk, addresses, case) for name in WORKERS}
        for name in COORDINATORS:
            self.start(name)

    def start(self, name: str) -> None:
        if name in COORDINATORS:
            peers = tuple(one for one in COORDINATORS if one != name)
            self.cluster.host(name).start(coordinator_of(self.seen, name, peers, LIMITS))
        else:
            self.cluster.host(name).start(self.workers[name].main)

    def start_dead(self) -> None:
        for name in EVERYBODY:
            if not self.cluster.host(name).is_running:
                self.start(name)

    @property
    def newest(self) -> Assignment | None:
        found = [
            worker.supervisor.assignment
            for worker in self.workers.values()
            if worker.supervisor is not None and worker.supervisor.assignment is not None
        ]
        return max(found, key=lambda one: one.version, default=None)

    async def until(self, is_so: Callable[[], bool], why: str, every_s: float = 0.1) -> None:
        loop, began = self.cluster.loop, self.cluster.loop.time()
        while not is_so():
            assert loop.time() - began < LIMIT_S, f"it took too long: {why}"
            await asyncio.sleep(every_s)

    def is_settled(self) -> bool:
        """Whether every partition is owned, live, and not about to move."""
        now = self.newest
        if now is None or any(
            share.former or share.next or not share.owner for share in now.shares
        ):
            return False
        live: set[Any] = set()
        for worker in self.workers.values():
            if worker.supervisor is not None:
                live |= worker.supervisor.report().live
        return live >= {(number, share.since) for number, share in enumerate(now.shares)}

    async def all_written(self) -> None:
        def is_all() -> bool:
            return tables_of(self.disk, self.case.plan) == tables_alone(self.case)

        await self.until(is_all, "not everything was written", 1.0)


def disturb(scene: Scene, chance: Any) -> None:
    """Kill or stop a machine, let all go on, or kill a worker's engine."""
    name = chance.pick(EVERYBODY)
    host = scene.cluster.host(name)
    match chance.below(6):
        case 0:
            host.kill()
        case 1 | 2:
            host.pause()
        case 3:
            for one in EVERYBODY:
                scene.cluster.host(one).resume()
        case 4:
            if name in WORKERS and scene.workers[name].engines and host.is_running:
                scene.workers[name].engines[-1].kill()


@on_cluster
async def anything_to_logs_between(cluster: SimCluster, seed: int) -> None:
    """Machines are killed and stopped, engines are killed, disks and stores fail.

    The records of the pipeline change partition twice, through logs.
    """
    await disturbed(Scene(cluster, DIVIDED))


async def disturbed(scene: Scene) -> None:
    """Disturb a cluster for a while; healed, it comes to rest and has everything written."""
    cluster = scene.cluster
    chance = cluster.host("chance")._chance
    for name in WORKERS:
        scene.start(name)
    for _ in range(10):
        await asyncio.sleep(chance.below(4000) / 1000)
        disturb(scene, chance)
        scene.start_dead()
    cluster.heal()
    for worker in scene.workers.values():
        for disk in worker.disks:
            disk.capacity_bytes = CAPACITY_BYTES
    scene.start_dead()
    await scene.until(scene.is_settled, "the cluster does not come to rest")
    await scene.all_written()


def test_logs_between_stages_do_not_tell_what_happened() -> None:
    tables_alone(DIVIDED)
    report = explore(anything_to_logs_between, seeds=range(2 * EXAMPLES))
    assert len(report.landed) > 5

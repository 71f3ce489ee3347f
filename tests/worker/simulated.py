"""Whole workers in the simulator: supervisor, membership and engine processes of one machine."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ripple.assignment import AssignmentChain, Candidate
from ripple.store import RetryingStore
from ripple.testing.cluster_worker import Child, End
from tests.worker.processes import CASE, INPUTS, NAME, Case, on_disk, runtime_of
from worker.membership import Membership
from worker.serving import serve
from worker.supervisor import Supervisor

if TYPE_CHECKING:
    from ripple.events import Event
    from ripple.testing import SimDisk, SimWorld


class Worker:
    """One worker, run after run of its machine."""

    def __init__(
        self, name: str, disk: SimDisk, coordinators: tuple[str, ...], case: Case = CASE
    ) -> None:
        self.name = name
        self.case = case
        self.disks: list[SimDisk] = []
        self.supervisor: Supervisor | None = None
        self.stopping: asyncio.Event | None = None
        self.has_completed: bool | None = None
        self.engines: list[Child] = []
        self.said: list[str] = []
        self.told: list[Event] = []
        self._disk = disk
        self._coordinators = coordinators

    async def main(self, world: SimWorld) -> None:
        own = on_disk(world, self._disk)
        self.disks.append(own.disk)
        self.has_completed = None

        async def work(pipe: End, slot: int) -> int:
            runtime = runtime_of(own, f"{self.name}/{slot}", self.told.append, self.case)
            return await serve(pipe, runtime, own.clock, self.said.append)

        async def spawn(slot: int) -> Child:
            self.engines.append(Child(lambda pipe: work(pipe, slot)))
            return self.engines[-1]

        def candidate(nonce: str) -> Candidate:
            return Candidate(
                id=self.name, nonce=nonce, code=self.case.code, inputs=((NAME, INPUTS),)
            )

        self.supervisor = worker = Supervisor(
            self.name, 1, spawn, own.clock, hung_after_s=30, say=self.said.append
        )
        store = RetryingStore(own.store, own.clock, own.random)
        membership = Membership(
            own,
            AssignmentChain(store, guards=own.guards),
            self._coordinators,
            candidate,
            worker.report,
            worker.heard,
            checkpoint=worker.store,
            tell=self.told.append,
        )
        self.stopping = asyncio.Event()
        await worker.run(membership, self.stopping)
        self.has_completed = await worker.stop(move_away_s=25, stop_s=29, reason="by hand")

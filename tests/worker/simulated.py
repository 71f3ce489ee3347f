"""Whole workers in the simulator: supervisor, membership and engine processes of one machine."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from ripple.assignment import AssignmentChain, Candidate
from ripple.store import RetryingStore
from tests.worker.processes import CASE, INPUTS, NAME, Case, on_disk, runtime_of
from worker.membership import Membership
from worker.serving import serve
from worker.supervisor import Supervisor

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ripple.events import Event
    from ripple.testing import SimDisk, SimWorld


class End:
    """One end of a pipe in memory; what is said is bytes on the way."""

    def __init__(self) -> None:
        self._given: asyncio.Queue[bytes | None] = asyncio.Queue()
        self.other: End = self
        self._is_closed = False

    @classmethod
    def pair(cls) -> tuple[End, End]:
        one, other = cls(), cls()
        one.other, other.other = other, one
        return one, other

    async def read(self) -> dict[str, Any] | None:
        data = await self._given.get()
        return None if data is None else dict(json.loads(data))

    async def write(self, message: dict[str, Any]) -> None:
        if self._is_closed or self.other._is_closed:
            raise BrokenPipeError
        self.other._given.put_nowait(json.dumps(message).encode())

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self.other._given.put_nowait(None)


class Engine:
    """An engine process as tasks of its machine."""

    def __init__(self, work: Callable[[End], Awaitable[int]]) -> None:
        self.pipe, theirs = End.pair()
        self._task = asyncio.ensure_future(work(theirs))

    async def wait(self) -> str:
        await asyncio.wait([self._task])
        return "killed" if self._task.cancelled() else f"with exit code {self._task.result()}"

    def dump(self) -> None:
        pass

    def kill(self) -> None:
        self._task.cancel()


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
        self.engines: list[Engine] = []
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

        async def spawn(slot: int) -> Engine:
            self.engines.append(Engine(lambda pipe: work(pipe, slot)))
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

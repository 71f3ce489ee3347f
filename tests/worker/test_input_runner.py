"""A partition that reads inputs, with temporary failures of its store or outputs."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import TYPE_CHECKING, Any

import pytest

from ripple.connectors.log.inputs import LogInputs
from ripple.control.assignment import epoch_of
from ripple.core.errors import OutputError
from ripple.core.events import Committed, Event, PartitionFailed, Quarantined
from ripple.storage.store import MemoryStore
from ripple.task.dead_letters.hint_store import HintStore
from ripple.task.dead_letters.in_flight import InFlight, Quarantine
from ripple.task.dead_letters.notes import notes_in
from ripple.task.dead_letters.suspicion import DEATHS_MAX
from ripple.task.durable_task import DurableTask
from ripple.task.lifecycle import TaskState
from ripple.task.standby import Standby, StandbyState
from ripple.testing import SimWorld, sim_world
from ripple.world.errors import StoreError
from tests.run_by import run_by
from tests.worker.processes import NAMES, PARTITIONS, PLAN, SETTINGS, SOURCE, LogEnds, given
from worker.engine import runner
from worker.engine.context import ProcessContext
from worker.engine.hosting import runner_of
from worker.engine.runner import Runner

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from ripple.connectors.commit_group import SinkGroup
    from ripple.connectors.connector import Part
    from ripple.connectors.contract import Commit

OWN = NAMES[::PARTITIONS]  # what partition 0 reads
END = {name: SOURCE.end[name] for name in OWN}


class GoneInFlight(MemoryStore):
    """Goes away when it has a note of what is in flight, some times, until it is called back."""

    def __init__(self) -> None:
        super().__init__()
        self.is_away = False
        self.times_away = 0
        self.noted = b""

    async def put_if_absent(self, name: str, data: bytes) -> bool:
        if self.is_away:
            raise StoreError("the store is away", done=False)
        put = await super().put_if_absent(name, data)
        self.noted += data if "/notes/" in name else b""
        if "/notes/" in name and b'"begin"' in data and self.times_away < 2 * DEATHS_MAX:
            self.is_away = True
            self.times_away += 1
        return put


class Alone:
    """A process that has partition 0 only; its store is back whenever a life of it has failed."""

    def __init__(self, ends: Callable[[SimWorld], LogEnds] = LogEnds) -> None:
        self.world = sim_world()
        SOURCE.install(self.world, whole=True)
        self.store = GoneInFlight()
        self.events: list[Event] = []
        self.context = ProcessContext(
            self.world, PLAN, self.store, ends(self.world), SETTINGS, self._emit
        )
        self.partition = self.hosted()

    def hosted(self) -> Runner:
        """Return another runner of the partition."""
        return runner_of(self.context, given(1, *[("a/0", 1)] * PARTITIONS), 0)

    def run(self, test: Callable[[Alone], Awaitable[None]]) -> None:
        async def main() -> None:
            await test(self)
            self.partition.drop()
            await self.partition.ended()

        self.world.loop.run_until_complete(main())

    async def at_end(self) -> None:
        """Wait until all that it reads is committed."""
        while not any(isinstance(one, Committed) and dict(one.cut) == END for one in self.events):
            await asyncio.sleep(0.01)

    async def followed(self) -> tuple[Runner, Runner]:
        """Return the owner, and a standby that has come as far."""
        standby = self.hosted()
        self.partition.own(1)
        await self.at_end()
        standby.follow()
        await until(lambda: standby.health.behind == 0)
        return self.partition, standby

    async def killed(
        self, epoch: int, shown: dict[str, int], *in_flight: Any, has_ended: bool = False
    ) -> None:
        """Leave what a life in another process does that was killed, or has ended."""
        place = HintStore(self.store, PLAN.name, random=self.world.random)
        await place.open(epoch)
        life = InFlight(
            place.notes(), version=PLAN.topology_hash, shown=shown, is_calm=not in_flight
        )
        if in_flight:
            life.begin(*in_flight)
        if has_ended:
            life.ended()
        await place.flush()
        self.store.is_away = False

    def _emit(self, _: int, event: Event) -> None:
        self.events.append(event)
        self.store.is_away = self.store.is_away and not isinstance(event, PartitionFailed)


alone = run_by(lambda test: Alone().run(test), "one")


@alone
async def test_records_of_lives_that_a_store_has_ended_are_not_set_aside(one: Alone) -> None:
    for epoch in (1, 2):  # so that the next task notes its records in flight
        await one.killed(epoch, dict.fromkeys(OWN, 0))
    one.partition.own(1)
    await one.at_end()
    assert [event for event in one.events if isinstance(event, Quarantined)] == []
    assert one.store.times_away == 1, "the first life is careful after others, and no later one"


@alone
async def test_end_by_a_store_is_no_death_of_who_was_handed_over_to_either(one: Alone) -> None:
    nothing = dict.fromkeys(OWN, 0)
    await one.killed(1, nothing, OWN[0], 0, 4)  # so that the next ones write notes
    await one.killed(2, nothing, has_ended=True)
    one.partition.own(1, is_handed_over=True)
    await one.at_end()
    assert one.store.times_away
    assert f'["suspect", "{OWN[0]}", 0, 1, 2'.encode() not in one.store.noted


@alone
async def test_death_of_an_owner_between_two_times_of_another_one_is_counted(one: Alone) -> None:
    one.partition.own(1)
    await one.at_end()
    one.partition.yield_ownership()
    await one.killed(epoch_of(2, 0), END, OWN[0], 4, 5)
    one.partition.own(3)
    while one.partition.health.epoch != epoch_of(3, 0) or not one.partition.health.is_live:
        await asyncio.sleep(0.01)
    notes = await notes_in(one.store, PLAN.name, 0) or b""
    assert f'["suspect", "{OWN[0]}", 4, 5, 1'.encode() in notes


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(600):  # of the simulated clock
        while not holds():
            await asyncio.sleep(0.01)


def task_of(partition: Runner) -> DurableTask:
    assert isinstance(partition._task, DurableTask)
    return partition._task


def standby_of(task: DurableTask) -> tuple[Standby, StandbyState]:
    standby = task.kept.standby
    assert standby is not None
    assert standby.state is not None
    return standby, standby.state


@alone
async def test_one_task_follows_and_is_promoted_and_demoted_with_its_engine(one: Alone) -> None:
    first, second = await one.followed()
    task = task_of(second)
    assert (task.state, second.health.is_live) == (TaskState.STANDBY, False)
    engine = standby_of(task)[1].engine
    first.yield_ownership()
    second.own(2, is_handed_over=True)
    await until(lambda: second.health.is_live and task.state is TaskState.RUNNING)
    assert task_of(second) is task
    assert task.engine is engine
    second.yield_ownership()
    second.own(3)  # its successor has failed before its claim
    await until(lambda: second.health.epoch == epoch_of(3, 0) and second.health.is_live)
    assert task_of(second) is task
    assert task.engine is engine
    second.drop()
    await second.ended()
    assert task.state is TaskState.CLOSED


@alone
async def test_standby_goes_on_following_after_a_claim_that_fails(one: Alone) -> None:
    _, second = await one.followed()
    task, one.store.is_away = task_of(second), True
    second.own(2)
    await until(lambda: any(isinstance(event, PartitionFailed) for event in one.events))
    assert (task.state, task.behind) == (TaskState.STANDBY, 0)
    await until(lambda: second.health.is_live)
    assert task_of(second) is task
    assert second.health.epoch != epoch_of(2, 0)
    second.drop()
    await second.ended()


@alone
async def test_engine_of_a_standby_that_does_not_fit_is_freed(one: Alone) -> None:
    first, second = await one.followed()
    standby, state = standby_of(task_of(second))
    engine = weakref.ref(state.engine)
    standby.state = state._replace(quarantine=Quarantine({OWN[0]: {0: "it has set that aside"}}))
    del standby, state
    first.yield_ownership()
    second.own(2, is_handed_over=True)
    await until(lambda: second.health.is_live)
    gc.collect()
    assert engine() is None
    second.drop()
    await second.ended()


class Counted(LogEnds):
    """Inputs that count their closings; outputs that are away once, on request."""

    closed = 0
    is_away = False

    def inputs(self, part: Part) -> LogInputs:
        found, close = super().inputs(part), LogInputs.close

        async def closed() -> None:
            self.closed += 1
            await close(found)

        found.close = closed  # type: ignore[method-assign]
        return found

    def outputs(self, part: Part, epoch: int, stage: int | None = 0, **more: object) -> SinkGroup:
        found = super().outputs(part, epoch, stage, **more)

        async def away(reached: Mapping[str, Commit]) -> None:
            raise OutputError("the outputs are away")

        if self.is_away:
            self.is_away = False
            found.commit = away  # type: ignore[method-assign]
        return found


def test_hand_over_that_is_revoked_while_it_waits_leaves_the_standby_its_inputs() -> None:
    ends: list[Counted] = []

    def counted(world: SimWorld) -> Counted:
        ends.append(Counted(world))
        return ends[0]

    async def story(one: Alone) -> None:
        first, second = await one.followed()
        task, permits = task_of(second), one.context.turns.hand_overs
        while not permits.locked():
            await permits.acquire()
        second.own(2, is_handed_over=True)
        await asyncio.sleep(1)
        second.yield_ownership()
        await second._owning.ended()
        assert (task.state, task.behind, ends[0].closed) == (TaskState.STANDBY, 0, 0)
        permits.release()
        second.own(3, is_handed_over=True)
        await until(lambda: second.health.is_live)
        assert task_of(second) is task
        for each in (first, second):
            each.drop()
            await each.ended()
        assert ends[0].closed == 2

    Alone(counted).run(story)


def test_state_of_a_task_that_has_failed_is_freed_before_the_next_one_is_live() -> None:
    ends: list[Counted] = []

    def away_once(world: SimWorld) -> Counted:
        ends.append(Counted(world))
        ends[0].is_away = True
        return ends[0]

    async def story(one: Alone) -> None:
        one.partition.own(1)
        await asyncio.sleep(0)
        await until(lambda: task_of(one.partition).live is not None)
        engine = weakref.ref(task_of(one.partition).engine)
        assert engine() is not None
        await one.at_end()
        assert any(isinstance(event, PartitionFailed) for event in one.events)
        one.events.clear()  # errors have tracebacks
        gc.collect()
        assert engine() is None
        one.partition.drop()
        await one.partition.ended()

    Alone(away_once).run(story)


class Failing(LogEnds):
    """Outputs that are away again each time, so long after somebody has begun to follow them."""

    def __init__(self, world: SimWorld, lasted_s: list[float]) -> None:
        super().__init__(world)
        self._loop = world.loop
        self._lasted_s = lasted_s
        self.began_s: list[float] = []
        self.failed_s: list[float] = []

    def reached(self, part: Part) -> Callable[[], Awaitable[dict[str, Any]]]:
        ask, lasts_s = super().reached(part), self._lasted_s[len(self.began_s)]
        self.began_s.append(self._loop.time())

        async def look() -> dict[str, Any]:
            if self._loop.time() - self.began_s[-1] >= lasts_s:
                self.failed_s.append(self._loop.time())
                raise OutputError("the outputs are away")
            return await ask()

        return look


def test_pauses_of_a_follower_grow_until_one_has_followed_for_a_while() -> None:
    steady_s = runner.STEADY_S + 0.1
    lasted_s = [0.0, 1.0, 0.0, steady_s, steady_s, 0.0, 1.0, 3600.0]
    ends: list[Failing] = []

    def failing(world: SimWorld) -> Failing:
        ends.append(Failing(world, lasted_s))
        return ends[0]

    async def follow(one: Alone) -> None:
        one.partition.follow()
        while len(ends[0].began_s) < len(lasted_s):
            await asyncio.sleep(0.01)

    Alone(failing).run(follow)
    found = [
        began - failed for began, failed in zip(ends[0].began_s[1:], ends[0].failed_s, strict=True)
    ]
    assert found == pytest.approx([0.1, 0.2, 0.4, 0.1, 0.1, 0.2, 0.4], abs=1e-3)

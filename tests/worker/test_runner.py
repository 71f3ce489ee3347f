from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any, cast

import pytest

from ripple.control.assignment import ATTEMPTS_MAX, epoch_of
from ripple.core.events import Event, PartitionFailed, Restored, Stored
from ripple.storage.fenced import FencedError
from ripple.task.lifecycle import TaskState
from ripple.task.report import Report
from ripple.testing.sim.chance import Chance
from ripple.testing.sim.loop import SimLoop
from ripple.testing.sim.world import SimClock
from ripple.world import LiveClock
from worker.engine import runner

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from ripple.task.owned_state import Ownership
    from ripple.task.spec import TaskContext
    from ripple.world.ports import Clock


class Flaky:
    """A partition whose tasks are scripted: the first one fails."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.events: list[Event] = []
        self.is_live = asyncio.Event()
        self.is_awake = asyncio.Event()
        self.report = Report()
        self.is_at_end, self.ends = True, 0
        self.clock = clock or LiveClock()
        self.runner = runner.Runner(self.clock, 3, self.events.append, self)

    def standby(self) -> None:
        return None

    @asynccontextmanager
    async def owner(
        self, ownership: Ownership, last: Any, context: TaskContext
    ) -> AsyncIterator[Any]:
        self.ownership, self.emit, self.report = ownership, context.emit, Report()
        yield self

    # --- as its own task ---

    state = TaskState.CLOSED

    def wake(self) -> None:
        self.is_awake.set()

    ask_for_checkpoint = wake

    async def run(self) -> None:
        await self.live(self.ownership.epoch or 0)

    async def live(self, epoch: int) -> None:
        if epoch == epoch_of(7, 0):
            raise OSError("the disk is full")
        self.report.restored, self.report.events = cast("Any", "as it was"), 3
        self.emit(Stored("a checkpoint", {}))
        self.is_live.set()
        await self.is_awake.wait()


async def test_failure_that_is_over_is_reported_no_more_and_work_is_counted_once() -> None:
    scripted = Flaky()
    partition = scripted.runner
    partition.own(7)
    while not scripted.events:
        await asyncio.sleep(0)
    assert partition.health.failure == "OSError: the disk is full"
    await scripted.is_live.wait()
    now = partition.health
    assert (now.is_live, now.failure, now.epoch) == (True, None, epoch_of(7, 1))
    failed, _ = scripted.events
    assert isinstance(failed, PartitionFailed)
    assert (failed.partition, failed.epoch) == (3, epoch_of(7, 0))
    partition.leave()
    await partition.ended()
    then = partition.health
    assert (then.is_live, then.events, then.checkpoints) == (False, 3, 1)


class Restless(Flaky):
    """A partition whose lives end by errors, each after it was live for so long."""

    lives_s = 0.0

    async def live(self, epoch: int) -> None:
        self.emit(Restored(None, {}, {}, (), 0, 0.0, "as it was"))
        await self.clock.sleep(self.lives_s)
        raise OSError("the output is away")


@pytest.mark.parametrize(("lives_s", "pauses_s"), [(0.0, [0.1, 0.2, 0.4]), (5.1, [0.1] * 3)])
def test_pauses_grow_only_where_lives_are_short(lives_s: float, pauses_s: list[float]) -> None:
    chance = Chance(0)
    loop = SimLoop(chance)
    began_s = []

    class Timed(Restless):
        async def live(self, epoch: int) -> None:
            began_s.append(loop.time())
            await super().live(epoch)

    async def main() -> None:
        scripted = Timed(SimClock(loop, chance))
        scripted.lives_s, partition = lives_s, scripted.runner
        partition.own(7)
        while len(began_s) <= len(pauses_s):
            await asyncio.sleep(0.01)
        partition.leave()
        await partition.ended()

    loop.run_until_complete(main())
    found = [after - before - lives_s for before, after in pairwise(began_s)]
    assert found == pytest.approx(pauses_s, abs=1e-3)


async def test_failure_of_another_time_is_no_failure_of_a_move() -> None:
    scripted = Flaky()
    partition = scripted.runner
    partition._failed(OSError("a follower's"), 0)
    assert partition.health.failure is not None
    partition.own(8)
    assert partition.health.failure is None
    await scripted.is_live.wait()
    partition.leave()
    await partition.ended()


class Hopeless(Flaky):
    """A partition that fails for as long as it is tried."""

    tries = 0

    async def live(self, epoch: int) -> None:
        self.tries += 1
        raise OSError("the disk is full")


async def test_exhausted_epochs_are_reported_and_a_later_version_brings_new_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runner, "PAUSE_MIN_S", 0)

    scripted = Hopeless()
    partition = scripted.runner
    for since in (7, 8):
        partition.own(since)
        await partition.ended()
        assert partition.health.is_spent
        assert partition.health.epoch == epoch_of(since, ATTEMPTS_MAX - 1)
    assert scripted.tries == 2 * ATTEMPTS_MAX


class Overtaken(Flaky):
    """A partition that a run has taken over, under an epoch that nobody has assigned."""

    async def live(self, epoch: int) -> None:
        if epoch <= epoch_of(7, 40):
            raise FencedError("an output was written by another owner", epoch_of(7, 40))
        self.is_live.set()
        await self.is_awake.wait()


async def test_next_try_is_above_an_owner_that_nobody_has_assigned() -> None:
    scripted = Overtaken()
    partition = scripted.runner
    partition.own(7)
    await scripted.is_live.wait()
    assert partition.health.epoch == epoch_of(7, 41)
    partition.drop()
    await partition.ended()

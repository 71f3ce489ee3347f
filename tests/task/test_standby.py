"""A follower that is about to own what it follows, on a simulated clock."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

import ripple as rp
from ripple.connectors.commit_group import SinkGroup
from ripple.connectors.contract import Commit
from ripple.connectors.log.inputs import LogInputs
from ripple.connectors.record_shape import RecordShape
from ripple.engine.operators.stream_rows import StreamRows
from ripple.model.pipeline.plan import Plan
from ripple.storage.checkpoint import Checkpoints
from ripple.storage.log import Topic
from ripple.storage.store import DiskStore
from ripple.task.spec import TaskSpec
from ripple.task.standby import LOOK_S, NEAR_S, Standby, StandbyState
from ripple.testing import SimWorld, sim_world
from tests.records import Fill
from tests.task.lives import PLAN, ROWS, SETTINGS, append

MS_NS = 10**6


class Owner:
    """It commits one record after the other, until it has done so many."""

    def __init__(self, world: SimWorld, every_ms: int, records: int, plan: Plan = PLAN) -> None:
        self._plan = plan
        self._clock = world.clock
        self._every_ms = every_ms
        self._records = records
        self.began_ns = world.clock.monotonic_ns()

    @property
    def committed(self) -> int:
        return min(self._records, self._age_ms // self._every_ms)

    @property
    def since_ms(self) -> int:
        """Since the newest commit."""
        return self._age_ms - self.committed * self._every_ms

    async def reached(self) -> Mapping[str, Commit | None]:
        reached = Commit({"trades": self.committed}, "")
        return {output.name: reached for output in self._plan.outputs}

    @property
    def _age_ms(self) -> int:
        return (self._clock.monotonic_ns() - self.began_ns) // MS_NS


def stopped_near(
    *, every_ms: int, interval_ms: int, records: int, after_s: float, plan: Plan = PLAN
) -> tuple[int, int, int]:
    """Follow an owner, and stop near it.

    Returns where it has come to, how many ms that took, and how many the owner's commit is ago.
    """
    world = sim_world()

    async def story() -> tuple[int, int, int]:
        append(world, ROWS)
        owner = Owner(world, every_ms, records, plan)
        inputs = LogInputs(
            Topic.open(world.disk, "trades"), {"trades": 0}, RecordShape(PLAN.source.schema), 4
        )
        warm = Standby(
            TaskSpec(plan, inputs, SinkGroup({})),
            Checkpoints(DiskStore(world.disk, world.random), plan.name),
            owner.reached,
            world,
            settings=replace(SETTINGS, commit_interval_ns=interval_ms * MS_NS),
            turn=asyncio.Semaphore(1),
        )
        following = asyncio.create_task(warm.follow())
        await world.clock.sleep(after_s)
        began_ns = world.clock.monotonic_ns()
        state = await warm.end(near=True)
        await following
        await inputs.close()
        assert state is not None
        took_ms = (world.clock.monotonic_ns() - began_ns) // MS_NS
        assert state.engine.cut["trades"] == owner.committed
        return owner.committed, took_ms, owner.since_ms

    return world.loop.run_until_complete(story())


@pytest.mark.parametrize("after_s", [1.01, 1.05, 1.09])
def test_standby_stops_right_behind_the_next_commit(after_s: float) -> None:
    came, took_ms, since_ms = stopped_near(
        every_ms=100, interval_ms=100, records=len(ROWS), after_s=after_s
    )
    assert came == 11
    assert took_ms <= 110
    assert since_ms <= 15


def test_standby_does_not_wait_for_an_owner_that_commits_nothing() -> None:
    came, took_ms, _ = stopped_near(every_ms=100, interval_ms=100, records=3, after_s=2)
    assert (came, took_ms) == (3, 0)


def test_standby_holds_no_more_events_than_it_applies_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    take, held = StreamRows.take, []

    def taken(stream: StreamRows) -> Any:
        found = take(stream)
        held.append(found.num_rows)
        return found

    monkeypatch.setattr(StreamRows, "take", taken)
    plan = rp.Pipeline("vwap").source("trades", Fill).sink("events").plan()
    stopped_near(every_ms=1, interval_ms=100, records=len(ROWS), after_s=1, plan=plan)
    assert (sum(held), max(held)) == (len(ROWS), SETTINGS.batch_rows)


def test_standby_whose_successor_gives_up_does_not_open_its_inputs_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    end, calls = Standby.end, list[str]()

    async def given_up(standby: Standby, *, near: bool) -> StandbyState | None:
        ending = asyncio.create_task(end(standby, near=near))
        await asyncio.sleep(0.02)
        assert not ending.done(), "it waits for the next commit"
        for name in ("open", "close"):
            act = getattr(standby.inputs, name)

            async def noted(*args: Any, name: str = name, act: Any = act) -> None:
                calls.append(name)
                await act(*args)

            setattr(standby.inputs, name, noted)
        ending.cancel()
        await asyncio.wait([ending])
        await standby.inputs.close()  # as its run does
        await asyncio.sleep(1)
        return await end(standby, near=False)

    monkeypatch.setattr(Standby, "end", given_up)
    with pytest.raises(asyncio.CancelledError):
        stopped_near(every_ms=100, interval_ms=100, records=len(ROWS), after_s=1.01)
    assert set(calls) == {"close"}


def test_standby_waits_briefly_where_commits_are_rare_or_late() -> None:
    came, took_ms, _ = stopped_near(every_ms=1000, interval_ms=1000, records=9, after_s=3.5)
    assert (came, took_ms) == (3, 0)
    late_ms = int(1000 * (NEAR_S + LOOK_S))
    came, took_ms, _ = stopped_near(every_ms=2000, interval_ms=250, records=9, after_s=4.05)
    assert came == 2
    assert took_ms <= late_ms

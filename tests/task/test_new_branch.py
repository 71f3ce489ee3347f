"""A branch that is added beside others: nothing tells of a crash while it is computed."""

from __future__ import annotations

from typing import Any

import ripple as rp
from ripple.engine.migration.adaptation import ChangedPlanError
from ripple.testing import CrashScenario, explore
from ripple.testing.crash.scenario import Variant
from ripple.testing.exploring import enumerate_crashes
from ripple.testing.sim.faults import Drawn, Faults
from ripple.testing.sim.run import run
from ripple.testing.sim.world import SimWorld
from tests.engine.machine.ticks import Tick
from tests.examples import EXAMPLES, SCATTERED
from tests.task.scenarios import events


def kept() -> Any:
    """Return the branches that are there from the beginning."""
    ticks = rp.Pipeline("test").source("ticks", Tick, out_of_order=10)
    by_symbol = ticks.partition("by-symbol", key="symbol")
    bars = by_symbol.window("w", rp.Tumbling(40), lateness=20).fold("bars", n=rp.count())
    return ticks, bars.sink("bars-out")


def grown() -> Any:
    """Return those with two more: events, and windows of others."""
    ticks, bars = kept()
    some = ticks.filter("some", rp.col("size") > 1)
    sizes = some.partition("by-size", key="size").window("v", rp.Tumbling(30), lateness=20)
    sums = sizes.fold("sizes", n=rp.count(), last=rp.last("symbol")).sink("sizes-out")
    return bars.also(some.sink("some-out")).also(sums)


class Grown:
    """A run of the grown pipeline, where another one has read all records before."""

    def __init__(self, happened: list[Any]) -> None:
        """Run both once undisturbed."""
        self.before, self.after = (
            CrashScenario(kept()[1], happened),
            CrashScenario(grown(), happened),
        )

    async def __call__(self, world: SimWorld, seed: int) -> None:
        """Run one incarnation: of the code before, until that has come to its end."""
        variant = Variant.of(seed)._replace(alongside=False, rival=False)
        self.before.source.install(world, whole=True)
        if not world.disk.exists("changed"):
            await self.before._run(world, variant)
            world.disk.install({"changed": b""})
        task = await self.after._run(world, variant)
        assert task is not None
        await self.after._compare(world, variant, task)


SCENARIO = Grown(events(9))


def test_outputs_do_not_tell_of_a_crash_while_a_branch_is_new() -> None:
    report = enumerate_crashes(SCENARIO, pairs=1, every=SCATTERED)
    assert report.lives > report.runs > 10


def test_branches_that_are_added_survive_random_faults() -> None:
    explore(SCENARIO, seeds=range(4 * EXAMPLES))


def test_state_of_the_code_before_is_not_all_that_a_crash_leaves() -> None:
    """Without a checkpoint of the new code first, outputs that have caught up are refused."""
    for seed in range(200):
        faults = Drawn(seed, Faults())
        error = run(SCENARIO, seed, faults, without=("first_of_code",)).error
        if isinstance(error, ChangedPlanError):
            return
    raise AssertionError("nobody misses it")

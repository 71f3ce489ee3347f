"""Whole clusters in the simulator: failures are reported and affect no output."""

from __future__ import annotations

import asyncio
import re
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from ripple.core.errors import OutputError, PlanError
from ripple.core.events import PartitionFailed
from ripple.testing import ClusterTrial, SimulationError, cluster_test, explore, on_cluster, repeat
from ripple.testing.cluster.scene import ClusterScene, Shape
from ripple.testing.cluster.trouble import Trouble
from ripple.testing.sim.faults import Drawn
from ripple.testing.sim.run import run
from tests.examples import EXAMPLES
from tests.worker import trials
from tests.worker.new_branch import NewBranchTrial
from worker.supervisor.state import State

if TYPE_CHECKING:
    from ripple.testing import SimCluster
    from ripple.testing.cluster.scene import ClusterScene as Scene
    from ripple.testing.sim.chance import Chance

# One of each kind of edge and node; where more is asked for, also those that differ less.
FIRST = (
    "new_branch",
    "new_branch_of_stages",
    "tree",
    "source_stages",
    "joined",
    "one_partition",
    "both_moved",
    "asked",
    "by_watermark",
    "endings",
    "matched",
    "idle_stages",
)
MORE = (
    "windows",
    "window_totals",
    "chain",
    "totals",
    "rows",
    "branched",
    "sources",
    "events_moved",
    "quotes_moved",
    "matched_at_once",
    "moved_at_once",
    "asked_idle",
    "asked_stages",
    "idle",
    "idle_sources",
    "idle_totals",
)
# By default that of the first ones which has the most faults and deaths.
SEEDS = (4,) if EXAMPLES == 1 else range(EXAMPLES)
TRIALS = FIRST if EXAMPLES == 1 else (*FIRST, *MORE)


def test_a_new_branch_refuses_no_record_that_later_stages_have_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ripple.testing.cluster.scene.LIMIT_S", 60.0)  # it never comes to rest
    trial = NewBranchTrial(
        trials.grown_stages(more=True, refuses=True),
        trials.events("refused"),
        before=trials.grown_stages(more=False),
    )
    error = run(trial, 0, Drawn(0, trial.faults)).error
    assert re.search(r"\d+ records up to .* are dead letters, and \d+ were with", f"{error}")


def test_rolling_restart_moves_everything_away_and_back() -> None:
    @on_cluster
    async def scenario(cluster: SimCluster, seed: int) -> None:
        scene = ClusterScene(cluster, trials.windows.truth, Shape(partitions=4, alongside=True))
        scene.start()
        await scene.come_to_rest()
        for name in tuple(scene.workers):
            began = cluster.loop.time()
            await scene.stop(name)
            assert cluster.loop.time() - began < 30
            worker = scene.workers[name]
            assert worker.has_completed
            assert worker.supervisor is not None
            assert worker.supervisor.lifecycle.state is State.STOPPED
            scene.start()
            await scene.come_to_rest()
        await trials.windows.compare(scene)

    for seed in range(EXAMPLES):
        done = repeat(scenario, seed=seed)
        if done.error is not None:
            raise done.error


def test_partition_that_fails_is_reported_with_its_cause() -> None:
    @on_cluster
    async def scenario(cluster: SimCluster, seed: int) -> None:
        scene = ClusterScene(cluster, trials.windows.truth, Shape(workers=1, partitions=2))
        scene.start()
        await scene.come_to_rest()
        cluster.host("w1").kill()
        assert scene.problem == "partition 0 is not live at w1/0"
        process: Any = SimpleNamespace(name="w1/0")
        failed = PartitionFailed(0, 1, OutputError("out/last/0 holds other changes"))
        scene.watch.on_event(process, 0, 1, failed)
        assert scene.problem == f"partition 0 is not live at w1/0: {failed.error}"

    done = repeat(scenario, seed=0)
    if done.error is not None:
        raise done.error


@pytest.mark.parametrize("name", TRIALS)
def test_cluster_heals_and_outputs_do_not_tell_what_happened(name: str) -> None:
    explore(getattr(trials, name), seeds=SEEDS)


# Where a missing safeguard is found out, and by what: the seed that did so when this was written.
MISSED = {
    "answer_follow": ("asked", 3),
    "come_back": ("chain", 17),
    "fence": ("rows", 37),
    "final_rows": ("window_totals", 0),
    "lane_holes": ("events_moved", 10),
    "lane_watermarks": ("both_moved", 1),
    "marker_follow": ("idle", 3),
    "marker_put": ("idle", 2),
    "marker_replay": ("idle", 3),
    "muted_replay": ("streams", 0),
    "own_rows": ("apart", 0),
}


@pytest.mark.parametrize("safeguard", MISSED)
def test_missing_safeguard_is_found_out(safeguard: str) -> None:
    name, seed = MISSED[safeguard]
    trial = getattr(trials, name)
    for tried in (seed, *range(1000)):
        if run(trial, tried, Drawn(tried, trial.faults), without=(safeguard,)).error is not None:
            return
    raise AssertionError(f"nobody misses {safeguard}")


def test_a_seed_is_a_whole_run() -> None:
    trial = trials.windows
    one, again = (run(trial, 5, Drawn(5, trial.faults)).trace.digest() for _ in range(2))
    assert one == again


def test_a_failure_says_the_seed_what_happened_what_differs_and_how_to_repeat_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ClusterTrial, "shrink_runs", 0)
    with pytest.raises(SimulationError) as failure:
        cluster_test(trials.windows, seeds=range(20), without=("muted_replay",))
    message = str(failure.value)
    found = re.search(r"^seed (\d+): Broken: I16: output '\w+': \(.*\) was written again", message)
    assert found
    assert "what happened: " in message
    assert re.search(r"^faults: ", message, re.MULTILINE)
    assert f"python -m ripple.testing tests.worker.trials:windows --seed {found[1]}" in message
    assert "--without muted_replay" in message


def test_a_pipeline_whose_key_is_computed_asks_where_its_events_are() -> None:
    plan: Any = (
        trials.rp.Pipeline("p")
        .source("trades", trials.Trade, time="t")
        .derive("half", half=trials.rp.col("size") // 2)
        .partition("by-half", key="half")
        .fold("rows", n=trials.rp.count())
        .sink("shown")
    )
    with pytest.raises(PlanError, match="keyed by half, which events of 'trades' do not have"):
        cluster_test(plan, trials.events("windows"))
    given = [(f"trades/{row['size'] % 2}", row) for row in trials.events("windows")]
    trial = ClusterTrial(plan, given, inputs=("trades/0", "trades/1"))
    assert trial.shape_of(0).partitions in {1, 2}


def test_everything_that_can_happen_does() -> None:
    """Each kind by itself, once, so that none is a name only."""

    class All(Trouble):
        def __init__(self, scene: Scene, chance: Chance) -> None:
            super().__init__(scene, chance)
            self.left = self.kinds()

        def next(self) -> None:
            self.left.pop()()

    @on_cluster
    async def scenario(cluster: SimCluster, seed: int) -> None:
        scene = ClusterScene(cluster, trials.windows.truth, Shape(partitions=4))
        trouble = All(scene, cluster.host("chance")._chance)
        scene.start()
        await scene.come_to_rest()
        while trouble.left:
            cluster.disturb()
            trouble.next()
            await asyncio.sleep(1)
            scene.start()
        scene.heal()
        await scene.come_to_rest()
        await trials.windows.compare(scene)

    done = repeat(scenario, seed=0)
    if done.error is not None:
        raise done.error

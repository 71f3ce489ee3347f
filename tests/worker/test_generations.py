"""Another generation serves: outputs are those of its code, whatever dies, and on the way back."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest

import ripple as rp
from ripple.control.assignment import AssignmentError
from ripple.control.assignment.epoch import VERSION_MAX
from ripple.control.assignment.generations import (
    PREFIX,
    VERSIONS_AHEAD,
    Serving,
    ServingChain,
    prefix_of,
    previews_of,
    store_of,
)
from ripple.testing import SimCluster, explore, on_cluster, repeat
from ripple.testing.cluster.scene import PRODUCER, Shape
from ripple.testing.cluster.worker import preview_of, topic_of
from ripple.testing.sim.store import SimStore
from tests.examples import FEW
from tests.worker.deployed import DeployedScene, DeployTrial
from tests.worker.trials import Trade, events, first
from worker.engine.generation import Generation, Standing


def staged(*, changed: bool = False, partitions: int = 2) -> Any:
    """Show trades of two stages; changed code shows another number of each venue."""
    pipeline = first().partition("second", key="venue", partitions=partitions)
    of = rp.max("total") if changed else rp.sum("total")
    return pipeline.fold("of-venue", n=rp.sum("n"), total=of).sink("last").sink("shown", of="rows")


def stepped(*, changed: bool) -> Any:
    """Show trades of one stage; changed code leaves small ones out, and so some keys."""
    start = rp.Pipeline("p").source("trades", Trade, time="t", out_of_order=3)
    large = start.filter("large", rp.col("size") > (3 if changed else 0))
    by_both = large.partition("first", key=("symbol", "venue"))
    return by_both.fold("rows", n=rp.count(), total=rp.sum("price")).sink("shown")


def line(second: int, third: int) -> Any:
    """Show venues by their trades, of three stages."""
    of_venue = first().partition("second", key="venue", partitions=second)
    of_venue = of_venue.fold("of-venue", n=rp.sum("n"))
    by_count = of_venue.partition("third", key="n", partitions=third)
    return by_count.fold("by-count", venues=rp.count()).sink("last").sink("shown", of="of-venue")


CHANGED_FOLD = DeployTrial(staged(changed=True), events("deploy"), staged(changed=False))
CHANGED_STEP = DeployTrial(stepped(changed=True), events("deploy"), stepped(changed=False))
MORE = DeployTrial(staged(partitions=4), events("deploy"), staged(partitions=2))
FEWER = DeployTrial(staged(partitions=1), events("deploy"), staged(partitions=3))
BEHIND = DeployTrial(line(4, 1), events("deploy"), line(2, 2))
MORE_OF_ALL = DeployTrial(staged(), events("deploy"), staged(), (2, 6))
FEWER_OF_ALL = DeployTrial(stepped(changed=True), events("deploy"), stepped(changed=False), (6, 3))
TRIALS = {
    "fold": CHANGED_FOLD,
    "step": CHANGED_STEP,
    "more": MORE,
    "fewer": FEWER,
    "behind": BEHIND,
    "more of all": MORE_OF_ALL,
    "fewer of all": FEWER_OF_ALL,
}


@pytest.mark.parametrize("trial", TRIALS.values(), ids=TRIALS)
def test_another_generation_serves_and_goes_back_whatever_happens(trial: DeployTrial) -> None:
    explore(trial, seeds=range(FEW))


def deployment(
    trial: DeployTrial, dies: str = "", limit_s: float = 300.0, counts: tuple[int, int] = (2, 2)
) -> Any:
    """Return a scenario: another generation warms up, and serves; then a machine dies.

    counts: the partitions of the first stages.
    """

    @on_cluster
    async def story(cluster: SimCluster, seed: int) -> None:
        truths = (trial.truth_before, trial.truth)
        scene = DeployedScene(cluster, truths, Shape(partitions=counts[0]), counts[1])
        scene.start(PRODUCER, *scene.machines_of(1))
        await scene.until(lambda: scene.has_shown(topic_of), lambda: "nothing is shown")
        scene.start(*scene.machines_of(2))
        preview = partial(preview_of, 2)
        await scene.until(lambda: scene.has_shown(preview), lambda: "there is no preview")
        above = (await scene.serve(2)).above
        if dies:
            await asyncio.sleep(0.25)
            cluster.host(dies).kill()
            await asyncio.sleep(1)
            scene.start(dies)
        await scene.complete(2, above, limit_s)

    return story


@pytest.mark.parametrize("dies", ["w11", "w21", "c1", "c2"])
def test_machine_dies_as_the_other_generation_takes_over(dies: str) -> None:
    run = repeat(deployment(CHANGED_FOLD, dies), seed=1)
    assert run.error is None, run.error


def test_rows_of_the_other_generation_are_not_taken_for_its_own() -> None:
    assert repeat(deployment(CHANGED_STEP), seed=1).error is None
    run = repeat(deployment(CHANGED_STEP, limit_s=20), seed=1, without=("other_generation",))
    assert "has digest" in str(run.error)


@pytest.mark.parametrize(("trial", "counts"), [(FEWER, (2, 2)), (FEWER_OF_ALL, (6, 3))])
def test_rows_do_not_stay_in_partitions_that_a_stage_has_no_more(
    trial: DeployTrial, counts: tuple[int, int]
) -> None:
    assert repeat(deployment(trial, counts=counts), seed=1).error is None
    story = deployment(trial, limit_s=20, counts=counts)
    run = repeat(story, seed=1, without=("other_partitions",))
    assert "are in several partitions" in str(run.error)


async def test_record_says_who_serves_and_epochs_rise() -> None:
    record = ServingChain(SimStore(), "a")
    assert await record.newest() == Serving(entry=0, generation=1, above=0, newest=1)
    forth = Serving().next(2, version=7)
    assert await record.put(Serving(), forth)
    assert not await record.put(Serving(), forth)  # another one came before
    assert await ServingChain(record._chain.store, "b").newest() == forth
    back = forth.next(1, version=5)
    assert (back.generation, back.newest, back.entry) == (1, 2, 2)
    assert back.above == forth.above + 5 + VERSIONS_AHEAD == 7 + 5 + 2 * VERSIONS_AHEAD


async def test_damaged_record_is_no_older_one() -> None:
    store = SimStore()
    record = ServingChain(store, "a")
    assert await record.put(Serving(), Serving().next(2, version=1))
    store.flip_bit(f"{PREFIX}{1:016}.json", 700)
    with pytest.raises(AssignmentError, match="which generation"):
        await record.newest()


def test_epochs_end_with_an_error() -> None:
    with pytest.raises(AssignmentError, match="another cluster"):
        Serving(above=VERSION_MAX - VERSIONS_AHEAD).next(2, version=1)


async def test_generation_writes_what_the_record_says() -> None:
    record = ServingChain(SimStore(), "a")
    one, two = Generation(1, record), Generation(2, record)
    named, previews = {"rows": "log:out/rows"}, previews_of(store_of("s", 2), ["rows"])
    assert previews == {"rows": f"log:s/{prefix_of(2)}/outputs/rows"}
    await two.begin()
    assert (one.standing, two.standing) == (Standing.SERVES, Standing.PREVIEW)
    assert (one.outputs(named, {}), two.outputs(named, previews)) == (named, previews)
    assert (one.serving, two.serving) == ("", "")  # of one generation nothing is noted
    await record.put(Serving(), Serving().next(2, version=1))
    for generation in (one, two):
        await generation.look()
    assert (one.standing, two.standing) == (Standing.FORMER, Standing.SERVES)
    assert (one.outputs(named, {}), two.outputs(named, previews)) == ({}, named)
    assert (one.serving, two.serving) == ("", "1")


def test_store_of_the_first_generation_is_the_one_that_is_named() -> None:
    assert (store_of("s", 1), store_of("s3://b/p", 2)) == ("s", "s3://b/p/cluster/g2")

"""Lives on machines that follow each other: whatever happens, what one process makes comes out."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from ripple.testing import SimCluster, on_cluster
from ripple.testing.sim.faults import Planned
from ripple.testing.sim.run import run
from tests.engine.machine.stage_plans import PLANS, trades
from tests.examples import EXAMPLES, THINNED
from tests.exchange.hosts import SETTINGS, Hosts, Pipeline
from tests.exchange.trouble import RARELY, SECONDS_MAX, TIGHT, Trouble, finish
from tests.world.clusters import simulate, simulated


@pytest.mark.parametrize("name", ["one-total", "rows-by-value", "windows-by-venue", "three"])
@simulated
async def test_machines_undisturbed_make_what_one_process_makes(
    cluster: SimCluster, name: str
) -> None:
    hosts = Hosts(cluster, Pipeline(PLANS[name], trades(Random(name), 60), 3), 2)
    hosts.start()
    await finish(hosts)
    assert not hosts.failures
    assert hosts.judged > len(hosts.pipeline.places)


@simulated
async def test_record_after_a_pause_is_committed_at_once_by_each_stage(cluster: SimCluster) -> None:
    slowly = replace(SETTINGS, commit_interval_ns=2_000_000_000)
    hosts = Hosts(cluster, Pipeline(PLANS["three"], trades(Random(5), 60), 1), 1, settings=slowly)
    hosts.start()
    for pause_s in (7.3, 2.5):
        await asyncio.sleep(pause_s)
        hosts.pipeline.write(0, 2)
        await asyncio.sleep(0.7)
        assert hosts.is_up_to_date
    hosts.pipeline.write(0, 2)  # is due when an interval has passed
    await asyncio.sleep(0.4)
    assert not hosts.is_up_to_date
    await finish(hosts)


@pytest.mark.parametrize("name", ["by-value", "windows-by-venue"])
@simulated
async def test_partition_without_checkpoints_is_corrected_from_its_senders(
    cluster: SimCluster, name: str
) -> None:
    hosts = Hosts(cluster, Pipeline(PLANS[name], trades(Random(name), 60), 2), 1)
    hosts.start()
    for number in range(2):
        hosts.pipeline.write(number, 12)
    await asyncio.sleep(5)
    cluster.disturb()
    cluster.host("h0").kill()
    cluster.store._objects.clear()
    for place in hosts.pipeline.places:
        hosts.assign(place, "h0")
    cluster.host("h0").start(hosts.main("h0"))
    await finish(hosts)


def troubled(
    name: str, seed: int, seconds_max: int = SECONDS_MAX, turns: int = 30 // THINNED
) -> Any:
    """Return a scenario of whatever may happen, which ends with what one process makes."""

    async def scenario(cluster: SimCluster, _: int) -> None:
        random = Random(f"{name}/{seed}")
        pipeline = Pipeline(PLANS[name], trades(random, 80), random.choice([1, 2, 3]))
        limits = random.choice([None, TIGHT])
        count = random.choice([1, 2, 3])
        hosts = Hosts(cluster, pipeline, count, limits=limits, settings=RARELY)
        cluster.disturb()
        hosts.start()
        trouble = Trouble(cluster, hosts, random)
        await trouble.go_on(turns)
        trouble.heal()
        await finish(hosts, seconds_max)

    return scenario


# Windows are disturbed under an observer, too (tests/client/outputs/test_observer.py), and several
# stages in whole clusters: tests/worker/test_cluster.py.
TROUBLED = ("by-value", "rows-by-value", "windows-by-venue", "three")[: 2 if EXAMPLES == 1 else 4]


@pytest.mark.parametrize("seed", range(EXAMPLES))
@pytest.mark.parametrize("name", TROUBLED)
def test_machines_that_die_freeze_and_lose_each_other_make_the_same(name: str, seed: int) -> None:
    simulate(troubled(name, seed), seed)


@pytest.mark.parametrize(
    ("safeguard", "name", "seed"),
    [
        # come_back and final_rows: tests/worker, where read_back is found missing, too.
        ("gone_keys", "by-value", 3),
        ("read_back", "by-value", 3),
    ][: 1 if EXAMPLES == 1 else 2],
)
def test_without_a_safeguard_something_else_comes_out(safeguard: str, name: str, seed: int) -> None:
    scenario = on_cluster(troubled(name, seed, 30, turns=30))
    done = run(scenario, seed, Planned(()), without=(safeguard,))
    assert isinstance(done.error, AssertionError)

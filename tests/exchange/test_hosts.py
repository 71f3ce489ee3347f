"""Lives on machines that follow each other: whatever happens, what one process makes comes out."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from ripple.testing import SimCluster
from tests.engine.test_stages import PLANS, trades
from tests.exchange.hosts import Hosts, Pipeline
from tests.world.clusters import simulate

SECONDS_MAX = 600


async def finish(hosts: Hosts) -> None:
    """Wait until all is committed, and compare."""
    for _ in range(SECONDS_MAX):
        if hosts.is_done:
            break
        await asyncio.sleep(1)
    assert hosts.is_done, (hosts.reached, hosts.failures)
    hosts.is_over = True
    assert hosts.pipeline.found() == hosts.pipeline.expected()


@pytest.mark.parametrize("name", ["one-total", "rows-by-value", "windows-by-venue", "three"])
def test_machines_undisturbed_make_what_one_process_makes(name: str) -> None:
    async def scenario(cluster: SimCluster, seed: int) -> None:
        hosts = Hosts(cluster, Pipeline(PLANS[name], trades(Random(name), 60), 3), 2)
        hosts.start()
        await finish(hosts)
        assert not hosts.failures
        assert hosts.judged > len(hosts.pipeline.places)

    simulate(scenario)

"""A world in which a minute is over at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from ripple.testing import SimCluster, SimWorld
from tests.run_by import run_by
from tests.world.clusters import idle, on, simulate


def run(test: Callable[[SimWorld], Awaitable[None]]) -> None:
    async def scenario(cluster: SimCluster, seed: int) -> None:
        host = cluster.host("a")
        host.start(idle)
        await asyncio.sleep(1)
        await on(host, test(host.world))

    simulate(scenario)


in_a_world = run_by(run, "world")

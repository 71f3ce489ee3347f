"""A world in which a minute is over at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from ripple.testing import SimCluster, SimWorld
from tests.world.clusters import idle, on, simulate


def in_a_world(story: Callable[[SimWorld], Awaitable[None]]) -> None:
    async def scenario(cluster: SimCluster, seed: int) -> None:
        host = cluster.host("a")
        host.start(idle)
        await asyncio.sleep(1)
        await on(host, story(host.world))

    simulate(scenario)

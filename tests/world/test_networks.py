"""Each form of the network keeps the contract."""

from __future__ import annotations

import asyncio

from ripple.testing import SimCluster, SimWorld, on_cluster, repeat
from ripple.world import LiveNetwork
from tests.world.network_contract import Main, NetworkContract


class TestLiveNetwork(NetworkContract):
    def run(self, main: Main) -> None:
        asyncio.run(main(LiveNetwork()))


class TestSimNetwork(NetworkContract):
    def run(self, main: Main) -> None:
        async def live(world: SimWorld) -> None:
            assert world.network is not None
            await main(world.network)

        @on_cluster
        async def scenario(cluster: SimCluster, seed: int) -> None:
            host = cluster.host("here")
            host.start(live)
            await host.ended()

        for seed in range(10):
            error = repeat(scenario, seed=seed).error
            if error is not None:
                raise error

"""Each form of the network keeps the contracts."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ripple.world import LiveNetwork
from tests.world import network_contract, tls_contract
from tests.world.certificates import LiveCertificates, SimCertificates
from tests.world.clusters import run_simulated
from tests.world.network_contract import NetworkContract
from tests.world.tls_contract import TlsContract


class TestLiveNetwork(NetworkContract):
    def run(self, main: network_contract.Main) -> None:
        asyncio.run(main(LiveNetwork()))


class TestSimNetwork(NetworkContract):
    def run(self, main: network_contract.Main) -> None:
        run_simulated(lambda world: main(world.network), 10)


class TestLiveTls(TlsContract):
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> None:
        self.certificates = LiveCertificates(tmp_path)

    def run(self, main: tls_contract.Main) -> None:
        async def run() -> None:
            await main(LiveNetwork(), self.certificates)
            await asyncio.sleep(0.05)  # for all ends to be closed

        asyncio.run(run())


class TestSimTls(TlsContract):
    def run(self, main: tls_contract.Main) -> None:
        run_simulated(lambda world: main(world.network, SimCertificates(world.disk)), 3)

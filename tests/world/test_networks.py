"""Each form of the network keeps the contracts."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ripple.cli.main import main as ripple
from ripple.testing import SimCluster, SimDisk, SimWorld, on_cluster, repeat
from ripple.testing.sim import tls as sim_tls
from ripple.world import LiveNetwork, Tls
from tests.world import network_contract, tls_contract
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


class LiveCertificates:
    """Made by the command."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def issue(self, name: str, authority: str = "ca") -> Tls:
        folder = self._folder / authority
        assert ripple(["cert", "--dir", str(folder), "--name", name]) == 0
        return Tls(
            certificate=str(folder / f"{name}.crt"),
            key=str(folder / f"{name}.key"),
            authority=str(shutil.copy(folder / "ca.crt", folder / f"{name}-ca.crt")),
        )

    def replace(self, path: str, by: str) -> None:
        shutil.copy(by, f"{path}.new")
        Path(f"{path}.new").replace(path)

    def spoil(self, path: str) -> None:
        Path(path).write_text("nonsense")


class SimCertificates:
    """Made of names."""

    def __init__(self, disk: SimDisk) -> None:
        self._disk = disk

    def issue(self, name: str, authority: str = "ca") -> Tls:
        return sim_tls.issue(self._disk, name, authority=authority)

    def replace(self, path: str, by: str) -> None:
        data = self._disk.contents(by)
        assert data is not None
        self._disk.install({path: data})

    def spoil(self, path: str) -> None:
        self._disk.install({path: b"nonsense"})


def run_simulated(main: Callable[[SimWorld], Awaitable[Any]], seeds: int) -> None:
    async def live(world: SimWorld) -> None:
        await main(world)

    @on_cluster
    async def scenario(cluster: SimCluster, seed: int) -> None:
        host = cluster.host("here")
        host.start(live)
        await host.ended()

    for seed in range(seeds):
        error = repeat(scenario, seed=seed).error
        if error is not None:
            raise error

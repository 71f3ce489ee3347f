"""Each form of the control port keeps the contract."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ripple.world.live_control import LiveControl
from tests.services.server import free_port
from tests.world.certificates import LiveCertificates, SimCertificates
from tests.world.clusters import run_simulated
from tests.world.control_contract import ControlContract, Main


class TestLiveControl(ControlContract):
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path) -> None:
        self.certificates = LiveCertificates(tmp_path)

    def run(self, main: Main) -> None:
        asyncio.run(main(LiveControl(), self.certificates))

    def lasting_place(self) -> str:
        return f"localhost:{free_port()}"


class TestSimControl(ControlContract):
    def run(self, main: Main) -> None:
        run_simulated(lambda world: main(world.control, SimCertificates(world.disk)), 10)

"""``ripple-worker`` with a port in use by another process."""

from __future__ import annotations

import socket
from contextlib import suppress
from pathlib import Path

import pytest

from ripple.control.process_settings import PROCESS_PORTS_APART
from ripple.model.pipeline.file import load_plan
from ripple.storage.log import LogSettings, Topic
from ripple.world import LiveDisk
from tests.services.server import free_port
from worker.__main__ import main

ROOT = Path(__file__).parents[2]
PIPELINE = ROOT / "examples" / "portfolio.py"  # its stages follow each other


def taken_at(apart: int) -> tuple[int, socket.socket]:
    """Return a port, and who listens at the one so far behind it."""
    while True:
        with suppress(OSError):
            port = free_port()
            return port, socket.create_server(("127.0.0.1", port + apart))


@pytest.mark.parametrize("name", ["health-port", "metrics-port", "rpc-port"])
def test_port_that_is_taken_is_named_with_its_setting(
    tmp_path: Path, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    schema = load_plan(str(PIPELINE)).source.schema
    settings = LogSettings(sync_appends=0)
    Topic.create(LiveDisk(tmp_path), "trades", schema, key=["symbol"], settings=settings)
    ports = {"health-port": 0, "metrics-port": 0, "rpc-port": free_port()}
    # Of two processes it is the second one whose port is taken.
    given, other = taken_at(PROCESS_PORTS_APART * (name == "rpc-port"))
    ports[name], taken = given, other.getsockname()[1]
    with other:
        processes = 2 if name == "rpc-port" else 1
        words = [
            *(str(PIPELINE), "--coordinator=localhost:1", f"--processes={processes}"),
            *(f"--store={tmp_path}/store", f"--source=log:{tmp_path}/trades"),
            *(f"--sink=by-symbol=log:{tmp_path}/out", "--log-format=text"),
            *(f"--{port}={number}" for port, number in ports.items()),
        ]
        assert main(words) == 1
    setting, said = name.replace("-", "_"), capfd.readouterr().err.splitlines()[-1]
    assert f"{setting} is {given} (from --{name}), and that port is unavailable: " in said
    assert str(taken) in said
    assert said.endswith(f"Give another one, as --{name} or RIPPLE_{setting.upper()}")

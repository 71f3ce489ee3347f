"""``ripple-worker`` with a port in use by another process."""

from __future__ import annotations

import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from ripple.control.process_settings import PROCESS_PORTS_APART
from ripple.model.pipeline.file import load_plan
from ripple.storage.log import LogSettings, Topic
from ripple.world import LiveDisk
from tests.patience import PATIENCE_S
from tests.services.server import free_port

ROOT = Path(__file__).parents[2]
PIPELINE = ROOT / "examples" / "portfolio.py"  # its stages follow each other


def taken_at(apart: int) -> tuple[int, socket.socket]:
    """Return a port, and who listens at the one so far behind it."""
    while True:
        with suppress(OSError):
            port = free_port()
            return port, socket.create_server(("127.0.0.1", port + apart))


@pytest.mark.parametrize("name", ["health-port", "metrics-port", "rpc-port"])
def test_port_that_is_taken_is_named_with_its_setting(tmp_path: Path, name: str) -> None:
    schema = load_plan(str(PIPELINE)).source.schema
    settings = LogSettings(sync_appends=0)
    Topic.create(LiveDisk(tmp_path), "trades", schema, key=["symbol"], settings=settings)
    ports = {"health-port": 0, "metrics-port": 0, "rpc-port": free_port()}
    # Of two processes it is the second one whose port is taken.
    given, other = taken_at(PROCESS_PORTS_APART * (name == "rpc-port"))
    ports[name], taken = given, other.getsockname()[1]
    with other:
        processes = 2 if name == "rpc-port" else 1
        ended = subprocess.run(
            [
                *(sys.executable, "-m", "worker", str(PIPELINE), "--coordinator=localhost:1"),
                *(f"--store={tmp_path}/store", f"--source=log:{tmp_path}/trades"),
                *(f"--sink=by-symbol=log:{tmp_path}/out", "--log-format=text"),
                *(f"--{port}={number}" for port, number in ports.items()),
                f"--processes={processes}",
            ],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
    assert ended.returncode == 1, ended.stderr
    setting, said = name.replace("-", "_"), ended.stderr.splitlines()[-1]
    assert f"{setting} is {given} (from --{name}), and that port is unavailable: " in said
    assert str(taken) in said
    assert said.endswith(f"Give another one, as --{name} or RIPPLE_{setting.upper()}")

"""``ripple-gateway`` as anybody would run it."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.cli.processes import ROOT
from tests.patience import PATIENCE_S
from tests.services.server import free_port

SAID = "gateway.log"
SAID_CHARACTERS = 8000


@asynccontextmanager
async def gateway(coordinator: str, folder: Path, *more: str) -> AsyncIterator[str]:
    """Run one, with its log in a folder, until it is told to end; yield its address once ready.

    What goes wrong meanwhile has the end of its log as a note.
    """
    port, health = free_port(), free_port()
    said = folder / SAID
    given = ["--coordinator", coordinator, "--port", str(port), "--health-port", str(health), *more]
    with said.open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "ripple.client.flight", *given], cwd=ROOT, stderr=log, stdout=log
        )
    try:
        ends = time.monotonic() + PATIENCE_S
        while not await asyncio.to_thread(_is_ready, health):
            assert process.poll() is None, "it has ended"
            assert time.monotonic() < ends, "it is not ready"
            await asyncio.sleep(0.05)
        yield f"127.0.0.1:{port}"
        process.send_signal(signal.SIGTERM)
        assert await asyncio.to_thread(process.wait, PATIENCE_S) == 0
        assert "has failed" not in said.read_text()
    except Exception as error:
        error.add_note(said.read_text()[-SAID_CHARACTERS:])
        raise
    finally:
        process.kill()
        process.wait()


def _is_ready(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/ready", timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False

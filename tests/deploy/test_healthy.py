"""The health check of the image, asked as a container engine does."""

from __future__ import annotations

import asyncio
import subprocess
import sys

import pytest

from ripple.control.probes import Page, serve_pages
from ripple.world.live_network import LiveNetwork
from tests.deploy.compose import ROOT


@pytest.mark.parametrize(("status", "code"), [(200, 0), (503, 1)])
def test_good_answer_is_healthy(status: int, code: int) -> None:
    async def ask() -> int:
        pages = {"/health": lambda: Page("as it is\n", status)}
        listener = await serve_pages(LiveNetwork(), "127.0.0.1:0", pages)
        try:
            return await asyncio.to_thread(_check, listener.address.rpartition(":")[2])
        finally:
            listener.close()

    assert asyncio.run(ask()) == code


def test_missing_answer_is_unhealthy() -> None:
    assert _check("9") == 1


def _check(port: str) -> int:
    return subprocess.run(
        [sys.executable, "-I", "-S", str(ROOT / "deploy/docker/healthy.py")],
        env={"RIPPLE_HOST": "127.0.0.1", "RIPPLE_HEALTH_PORT": port},
        check=False,
        capture_output=True,
    ).returncode

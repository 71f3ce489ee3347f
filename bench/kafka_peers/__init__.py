"""Other libraries at the same job, each as its documentation shows, and where they are installed.

Each is a script: ``PYTHON quix.py BROKERS SOURCE SINK FOLDER``. It reads trades as JSON, and writes
VWAP per symbol and minute once the minute is over, as JSON of ``symbol``, ``window_start_ns`` and
``vwap``.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
REQUIREMENTS = HERE / "requirements.txt"


def interpreter(client: str) -> str:
    """Return what runs a client of the reading and writing benchmarks."""
    return python() if client == "confluent" else sys.executable


def python() -> str:
    """Return the interpreter that has them, of ``RIPPLE_BENCH_PEERS`` or made in the cache."""
    from tests.services.cache import kept  # noqa: PLC0415 - the peers do without it

    given = os.environ.get("RIPPLE_BENCH_PEERS")
    if given:
        return given
    wanted = hashlib.sha256(REQUIREMENTS.read_bytes()).hexdigest()[:8]
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    folder = kept(f"bench-peers-{wanted}-python-{version}", _install)
    return str(folder / "bin" / "python")


def _install(folder: Path) -> None:
    from tests.services.cache import fetch  # noqa: PLC0415

    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    asked = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q", "-r", str(REQUIREMENTS)]
    fetch(asked, folder, "the peers of the benchmarks")

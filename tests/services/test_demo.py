"""``make demo-kafka`` comes to results, and leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S
from tests.services.jars import java
from tests.services.missing import MissingError, skip

pytestmark = pytest.mark.services


def test_the_demo_shows_committed_results_and_ends(tmp_path: Path) -> None:
    try:
        java("the demo")
    except MissingError as error:
        skip(error)
    ended = subprocess.run(
        [sys.executable, "-m", "tests.services.demo", "--records", "20"],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=12 * PATIENCE_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "VWAP of the minute from" in ended.stdout
    assert "Portfolio: all symbols" in ended.stdout
    assert "demo: all of it has ended" in ended.stderr
    assert not list(tmp_path.iterdir())

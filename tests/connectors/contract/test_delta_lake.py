"""What ``delta_lake_stories`` holds of tables of Delta Lake, in a process of its own.

Each story is a fork, and forks stand still where Polars or deltalake were used before, as they are
by other tests.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.processes import ROOT
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.services

STORIES = Path(__file__).with_name("delta_lake_stories.py")


def test_the_stories_of_delta_lake_hold() -> None:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", STORIES]
    ended = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=12 * PATIENCE_S, check=False
    )
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"
    assert " passed" in ended.stdout

"""A short form of what ``make chaos`` does to owners of partitions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S

pytestmark = pytest.mark.services

ROOT = Path(__file__).resolve().parents[2]


def test_rows_of_alternating_owners_are_written_once_despite_killed_brokers() -> None:
    command = [sys.executable, "-m", "tests.services.kafka_owners", "--kills", "4"]
    ended = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=12 * PATIENCE_S, check=False
    )
    assert ended.returncode == 0, ended.stderr[-6000:]
    assert "each once" in ended.stderr

"""The benchmarks run: what they call changes with the library, and nobody runs them every day."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench import BENCHMARKS

pytestmark = pytest.mark.services

ROOT = Path(__file__).parents[2]
# These need what only the extra `bench` installs, or minutes.
OTHERS = (
    *("b02_wire", "end_to_end", "engine_batches", "memory", "b05_replay", "checkpoint", "log"),
    *("recovery", "kafka_reading", "kafka_writing", "kafka_pipeline", "spark", "barrage"),
    *("spark_files", "spark_scale"),
    *("beats", "deaths", "moves", "kafka_moves", "nexmark", "ordered"),
)


def test_benchmarks_run_to_their_end(tmp_path: Path) -> None:
    names = [name for name in BENCHMARKS if name not in OTHERS]
    command = [sys.executable, "-m", "bench", "--quick", "--json", str(tmp_path / "figures.json")]
    ended = subprocess.run(
        [*command, *names], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert all(f"== {name} (" in ended.stdout for name in names)

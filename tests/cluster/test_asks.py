"""Answers of a service in a cluster of real processes, and its end once all of them are there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.cluster import Job
from tests.cluster.market import append, logs_of
from tests.cluster.up import Up

PIPELINE = Path(__file__).with_name("pipeline_asks.py")
OUTPUTS = ("shown", "sums-out", "over-out", "times-out")
ROWS = 1500


@pytest.mark.services
def test_a_cluster_ends_with_the_answers_although_a_worker_was_killed(tmp_path: Path) -> None:
    logs_of(tmp_path, PIPELINE, {"trades": (2, "symbol")})
    job = Job(PIPELINE, tmp_path / "trades", tmp_path / "made", OUTPUTS, 2)
    append(tmp_path, "trades", 0, ROWS)
    up = Up(job, "--until-end")
    up.says(r"partition \d: begins at")
    up.kill_worker()
    assert up.ended() == 0, up.said
    assert "was killed by SIGKILL" in up.said
    assert f"{ROWS:,} of {ROWS:,} records are in the outputs (100 %)\n" in up.said
    assert job.tables_made() == job.tables_alone(tmp_path)
    again = Up(job, "--until-end")
    assert again.ended() == 0, again.said

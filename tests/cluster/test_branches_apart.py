"""Branches of one source by keys without a common field, on a cluster of real processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.cluster import Job
from tests.cluster.market import append, logs_of
from tests.cluster.up import Up

PIPELINE = Path(__file__).with_name("pipeline_apart.py")
OUTPUTS = ("out", "venues-out", "shown")
ROWS = 4000


@pytest.mark.services
def test_tables_are_those_of_one_process_although_a_worker_was_killed(tmp_path: Path) -> None:
    trades = tmp_path / "trades"
    logs_of(tmp_path, PIPELINE, {"trades": (4, "symbol")})
    job = Job(PIPELINE, trades, tmp_path / "made", OUTPUTS, 8)
    append(tmp_path, "trades", 0, ROWS)
    up = Up(job)
    up.says("records of trades are repartitioned by symbol; for venues by venue")
    up.says(r"partition \d+: begins at")
    append(tmp_path, "trades", 1, ROWS)
    up.kill_worker()
    up.end_resumed()
    append(tmp_path, "trades", 2, ROWS)
    again = Up(job, "--until-end")
    assert again.ended() == 0, again.said
    assert job.tables_made() == job.tables_alone(tmp_path)

"""Rows of a join from their reading on, on a cluster of real processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.cluster import Job
from tests.cluster.market import append, logs_of
from tests.cluster.up import Up

PIPELINE = Path(__file__).with_name("pipeline_at_once.py")
ROWS = 4000


def job_of(folder: Path, quotes_by: str) -> Job:
    """Make the logs of trades, divided by their symbol, and of quotes."""
    named = logs_of(folder, PIPELINE, {"trades": (4, "symbol"), "quotes": (6, quotes_by)})
    return Job(
        PIPELINE,
        folder / "trades",
        folder / "made",
        ("out", "now-out", "pairs-out"),
        2,
        named=named,
    )


@pytest.mark.services
@pytest.mark.parametrize("quotes_by", ["symbol", "bid"])
def test_rows_are_those_of_one_process_although_workers_were_killed(
    quotes_by: str, tmp_path: Path
) -> None:
    """Quotes divided by another field are repartitioned."""
    job = job_of(tmp_path, quotes_by)
    append(tmp_path, "trades", 0, ROWS)
    up = Up(job)
    up.says(r"partition \d: begins at .*trades/0 0")
    append(tmp_path, "quotes", 0, ROWS)
    append(tmp_path, "trades", 1, ROWS)
    up.kill_worker()
    append(tmp_path, "quotes", 1, ROWS)
    up.end_resumed()
    append(tmp_path, "trades", 2, ROWS)
    again = Up(job, "--until-end")
    assert again.ended() == 0, again.said
    _, rows, pairs = made = job.tables_made()
    assert made == job.tables_alone(tmp_path)
    assert len(rows.rows) > 2 * ROWS
    assert len(pairs.rows) > ROWS

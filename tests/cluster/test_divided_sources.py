"""Two sources that are divided by different fields, on a cluster of real processes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.cluster.cluster import Job, ripple
from tests.cluster.market import append, logs_of
from tests.cluster.up import Up

PIPELINE = Path(__file__).with_name("pipeline_divided.py")
COUNTS = {"trades": (4, "symbol"), "quotes": (6, "bid")}
ROWS = 4000


def job_of(folder: Path) -> Job:
    named = logs_of(folder, PIPELINE, COUNTS)
    outputs = ("out", "pairs-out")
    return Job(PIPELINE, folder / "trades", folder / "made", outputs, 4, named=named)


def rows_of(topic: Path, partitions: int) -> list[str]:
    """Return the rows of a stream of all partitions, in any order."""
    tailed = [ripple("log", "tail", topic, "--partition", at) for at in range(partitions)]
    return sorted(line for each in tailed for line in each.splitlines())


@pytest.mark.services
def test_a_join_is_that_of_one_process_although_workers_were_killed(tmp_path: Path) -> None:
    job = job_of(tmp_path)
    for source in COUNTS:
        append(tmp_path, source, 0, ROWS)
    up = Up(job, "--sink", f"shown=log:{tmp_path / 'made/shown'}")
    up.says("records of quotes are repartitioned by symbol")
    up.says(r"partition 2: begins at quotes/0 0.*trades/0 0|partition 2: begins at trades/0 0")
    append(tmp_path, "trades", 1, ROWS)
    up.kill_worker()
    append(tmp_path, "quotes", 1, ROWS)
    up.end_resumed()
    append(tmp_path, "trades", 2, ROWS)
    again = Up(job, "--sink", f"shown=log:{tmp_path / 'made/shown'}", "--until-end")
    assert again.ended() == 0, again.said
    whole = replace(job, outputs=(*job.outputs, "shown"))
    assert job.tables_made() == whole.tables_alone(tmp_path)[:2]
    shown = rows_of(tmp_path / "made/shown", 4)
    assert len(shown) > ROWS
    assert shown == rows_of(tmp_path / "whole/shown", 1)

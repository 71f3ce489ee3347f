"""Which rows of a later stage's output are removed when a task has taken over."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import ripple as rp
from ripple.task.reconciliation import Reconciliation
from tests.task.later_stage import Trade


def plan() -> Any:
    """Return a plan whose later stage ends with windows; its first fold has none."""
    start = rp.Pipeline("p").source("trades", Trade, time="t", key="symbol")
    keyed = start.partition("first", key="symbol")
    kept = keyed.fold("kept", n=rp.count())
    bars = keyed.window("w", rp.Tumbling(10), lateness=4).fold("bars", n=rp.count())
    times = bars.partition("second", key="window_start_ns", partitions=1)
    return kept.sink("all").also(times.fold("times", n=rp.sum("n")).sink("shown")).plan()


@pytest.mark.parametrize("checkpoint", [None, "one"])
def test_rows_that_were_final_when_it_began_stay_though_an_older_mark_reads_them_back(
    checkpoint: str | None,
) -> None:
    made: Any = Reconciliation
    recovery = made(
        SimpleNamespace(plan=plan()),
        SimpleNamespace(checkpoint=checkpoint),
        SimpleNamespace(watermark_ns=24),
        SimpleNamespace(standings={}),
        intake=None,
        context=None,
        guards=None,
    )
    left = pa.table({"window_start_ns": [0, 10, 20]})
    assert recovery._to_remove("shown", left).to_pydict() == {"window_start_ns": [20]}

"""How often a stage stores checkpoints."""

from __future__ import annotations

from typing import Any, cast

import pytest

import ripple as rp
from ripple.task.settings import Settings
from worker.engine.context import ProcessContext
from worker.engine.workload import StageWork
from worker.settings import CHECKPOINT_INTERVAL_MS

MS = 1_000_000


@rp.record
class Trade:
    symbol: str
    venue: str
    price: float
    timestamp_ns: rp.Timestamp


def staged() -> rp.Pipeline:
    return (
        rp.Pipeline("p")
        .source("trades", Trade)
        .partition("by-symbol", key=("symbol", "venue"))
        .fold("vwap", vwap=rp.mean("price"))
        .partition("by-venue", key="venue")
        .fold("all", found=rp.median("vwap"))
        .sink("output")
    )


@pytest.mark.parametrize(
    ("asked_ms", "interval_ms"),
    [
        (CHECKPOINT_INTERVAL_MS, 10_000),  # senders keep final rows
        (60_000, 60_000),
        (500, 500),
    ],
)
def test_a_stage_keeps_to_the_interval_that_was_asked_for(asked_ms: int, interval_ms: int) -> None:
    settings, none = Settings(checkpoint_interval_ns=asked_ms * MS), cast("Any", None)
    context = ProcessContext(none, staged().plan(), none, None, settings)
    work = StageWork(
        context=context, partition=1, stage=1, number=0, shows=(), senders=1, outputs=none,
        upstream=none,
    )  # fmt: skip
    assert work.settings.checkpoint_interval_ns == interval_ms * MS

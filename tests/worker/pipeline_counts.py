"""A pipeline of a user, for workers to run."""

from __future__ import annotations

import ripple as rp


@rp.record(version=1)
class Tick:
    symbol: str
    size: int
    at_ns: rp.Timestamp


pipeline = (
    rp.Pipeline("counts")
    .source("ticks", Tick)
    .partition("by-symbol", key="symbol")
    .fold("count", n=rp.count())
    .sink("counts", of="count")
)
PLAN = pipeline.plan()

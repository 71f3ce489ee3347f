"""Trades by symbol, then by class of size: the second stage elsewhere."""

from __future__ import annotations

import ripple as rp


@rp.record(version=1)
class Trade:
    symbol: str
    size: int
    at_ns: rp.Timestamp
    traceparent: str


pipeline = (
    rp.Pipeline("traced")
    .source("trades", Trade, key="symbol")
    .partition("by-symbol", key="symbol")
    .fold("counts", trades=rp.count(), size=rp.sum("size"))
    .derive("class", decade=rp.col("size") % 4)
    .partition("by-decade", key="decade", partitions=4)
    .fold("classes", trades=rp.sum("trades"))
    .sink("out", of="counts")
    .sink("by-class", of="classes")
)

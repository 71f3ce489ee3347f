"""VWAP by symbol, by class of size, and one portfolio over all of them: folds over folds."""

from __future__ import annotations

import ripple as rp
from tests.records import SizedTrade

pipeline = (
    rp.Pipeline("totals")
    .source("trades", SizedTrade)
    .partition("by-symbol", key="symbol")
    .fold("vwap", vwap=rp.vwap("price", "size"), trades=rp.count())
    .derive("class", decade=rp.col("trades") % 10)
    .partition("by-decade", key="decade", partitions=3)
    .fold("by-class", trades=rp.sum("trades"), mean=rp.mean("vwap"), middle=rp.median("vwap"))
    .partition("everything", key=())
    .fold("sums", portfolio=rp.sum("mean"), trades=rp.sum("trades"))
    .sink("out", of="vwap")
    .sink("decades", of="by-class")
    .sink("portfolio", of="sums")
)

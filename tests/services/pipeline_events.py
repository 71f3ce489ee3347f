"""Events in external systems: each has a part of them."""

from __future__ import annotations

import ripple as rp
from tests.task.pipeline_vwap import Trade

trades = rp.Pipeline("fills").source("trades", Trade)
large = trades.filter("of-more", rp.col("size") > 300).sink("large", key="symbol")
small = trades.filter("of-less", rp.col("size") <= 300).sink("small")
pipeline = (
    large.also(small)
    .also(trades.sink("all"))
    .also(trades.partition("by-symbol", key="symbol").fold("view", n=rp.count()).sink("counts"))
)

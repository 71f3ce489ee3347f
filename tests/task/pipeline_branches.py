"""A pipeline of a user with branches, for the commands to run."""

from __future__ import annotations

import ripple as rp
from tests.task.pipeline_vwap import Trade

trades = rp.Pipeline("vwap-1s").source("trades", Trade)
views = (
    trades.partition("by-symbol", key="symbol")
    .window("1s", rp.Tumbling("1s"), lateness="1s")
    .fold("vwap", vwap=rp.vwap("price", "size"), trades=rp.count())
    .partition("by-end", key="window_end_ns")
    .fold("sum", symbols=rp.count())
    .sink("out", of="vwap")
    .sink("total", of="sum")
)
large = trades.filter("of-more", rp.col("size") > 300).sink("dear", key="symbol")
pipeline = views.also(large).also(trades.sink("plain"))

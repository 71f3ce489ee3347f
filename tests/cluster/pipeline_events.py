"""VWAP by symbol in short windows, and over all windows ever: groups that outlive their windows."""

from __future__ import annotations

import ripple as rp
from tests.records import SizedTrade

pipeline = (
    rp.Pipeline("events")
    .source("trades", SizedTrade)
    .partition("by-symbol", key="symbol")
    .window("1s", rp.Tumbling("1s"), lateness="1s")
    .fold("vwap", vwap=rp.vwap("price", "size"), trades=rp.count())
    .derive("class", decade=rp.col("trades") % 10)
    .partition("by-decade", key="decade", partitions=3)
    .fold("by-class", middle=rp.median("vwap"), windows=rp.count(), top=rp.top_k("trades", 3))
    .partition("everything", key=())
    .fold("sums", windows=rp.sum("windows"), middle=rp.max("middle"))
    .sink("out", of="vwap")
    .sink("classes", of="by-class")
    .sink("total", of="sums")
)

"""VWAP by symbol in short windows, and over all windows ever: groups that outlive their windows."""

from __future__ import annotations

import ripple as rp


@rp.record(version=1)
class Trade:
    symbol: str
    price: float
    size: int = rp.field(gt=0)
    timestamp_ns: rp.Timestamp
    venue: str


pipeline = (
    rp.Pipeline("events")
    .source("trades", Trade)
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

"""A pipeline of a user, for the commands to run."""

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
    rp.Pipeline("vwap-1s")
    .source("trades", Trade)
    .partition("by-symbol", key="symbol")
    .window("1s", rp.Tumbling("1s"), lateness="1s")
    .fold("vwap", vwap=rp.vwap("price", "size"), trades=rp.count())
    .partition("by-end", key="window_end_ns")
    .fold("sum", symbols=rp.count())
    .sink("out", of="vwap")
    .sink("total", of="sum")
)

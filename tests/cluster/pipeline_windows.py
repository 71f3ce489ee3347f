"""VWAP by symbol in short windows, corrected when trades come late."""

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
    .fold("vwap", vwap=rp.vwap("price", "size"), highest=rp.max("price"), trades=rp.count())
    .sink("out", of="vwap")
)

"""Volume-weighted prices by symbol in windows, by venue, and the whole market."""

from __future__ import annotations

import ripple as rp


@rp.record(version=1)
class Trade:
    symbol: str
    price: float = rp.field(finite=True)
    size: int = rp.field(gt=0)
    timestamp_ns: rp.Timestamp
    venue: str


pipeline = (
    rp.Pipeline("market")
    .source("trades", Trade, key="symbol", reject_future="1h")
    .filter("round-lots", rp.col("size") >= 10)
    .derive("notional", notional=rp.col("price") * rp.col("size"))
    .partition("by-symbol", key=("symbol", "venue"))
    .window("10s", rp.Tumbling("10s"), lateness="60s")
    .fold("prices", vwap=rp.vwap("price", "size"), volume=rp.sum("size"), trades=rp.count())
    .derive("class", liquid=rp.col("trades") > 20)
    .partition("by-venue", key="venue", partitions=4)
    .fold("venues", volume=rp.sum("volume"), trades=rp.sum("trades"), mean=rp.mean("vwap"))
    .partition("all", key=())
    .fold("market", volume=rp.sum("volume"), venues=rp.count())
    .sink("vwap", of="prices")
    .sink("venue-volume", of="venues")
    .sink("turnover", of="market")
)

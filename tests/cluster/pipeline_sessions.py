"""Volume by symbol and session, that is until nobody has traded for a while."""

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
    rp.Pipeline("sessions")
    .source("trades", Trade)
    .partition("by-symbol", key="symbol")
    .filter("not-odd", rp.col("size") > 20)
    .window("sessions", rp.Session("150ms"), lateness="1s")
    .fold("volume", volume=rp.sum("size"), middle=rp.median("price"))
    .sink("out", of="volume")
)

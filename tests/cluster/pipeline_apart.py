"""Trades folded by symbol and by venue, which have no field in common."""

import ripple as rp


@rp.record(version=1)
class Trade:
    symbol: str
    price: float
    size: int = rp.field(gt=0)
    venue: str
    timestamp_ns: rp.Timestamp


trades = rp.Pipeline("apart").source("trades", Trade, time="timestamp_ns", out_of_order="40ms")
symbols = trades.partition("by-symbol", key="symbol").fold(
    "symbols", n=rp.count(), total=rp.sum("size"), last=rp.last("price")
)
venues = (
    trades.partition("by-venue", key="venue")
    .window("second", rp.Tumbling("1s"), lateness="1s")
    .fold("venues", n=rp.count(), high=rp.max("price"), first=rp.first("size"))
)
pipeline = symbols.sink("out").also(venues.sink("venues-out")).also(trades.sink("shown"))

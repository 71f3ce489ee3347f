"""Trades by symbol, joined with quotes that another field divides."""

import ripple as rp


@rp.record(version=1)
class Trade:
    symbol: str
    price: float
    size: int = rp.field(gt=0)
    venue: str
    timestamp_ns: rp.Timestamp


@rp.record(version=1)
class Quote:
    symbol: str
    bid: float
    ask: float = rp.field(gt=0.0)
    timestamp_ns: rp.Timestamp


market = rp.Pipeline("market")
trades = market.source("trades", Trade, time="timestamp_ns", out_of_order="40ms")
quotes = market.source("quotes", Quote, time="timestamp_ns", out_of_order="40ms")
near = trades.join_asof("near", quotes, on="symbol", lateness="100ms", emit="final")
pairs = trades.join_interval(
    "pairs", quotes, on="symbol", within=("-20ms", "20ms"), lateness="100ms", emit="final"
)
spreads = near.partition("by-symbol", key="symbol").fold(
    "spreads", n=rp.count(), bids=rp.sum("bid"), last=rp.last("bid")
)
met = (
    pairs.partition("met-by", key="symbol")
    .window("second", rp.Tumbling("1s"))
    .fold("met", n=rp.count(), high=rp.max("bid"), first=rp.first("size"))
)
pipeline = spreads.sink("out").also(met.sink("pairs-out")).also(near.sink("shown"))

"""Bars over trades and quotes, two sources divided by their symbol, and folds of further keys."""

from __future__ import annotations

import ripple as rp
from tests.records import SizedTrade


@rp.record(version=1)
class Quote:
    symbol: str
    bid: float
    ask: float = rp.field(gt=0)
    timestamp_ns: rp.Timestamp


market = rp.Pipeline("market")
trades = market.source("trades", SizedTrade, key="symbol", out_of_order="50ms")
quotes = market.source("quotes", Quote, key="symbol", out_of_order="50ms")


@rp.record(version=1)
class Price:
    symbol: str
    price: float
    timestamp_ns: rp.Timestamp


def of_trade(trade: SizedTrade) -> SizedTrade:
    return trade


def of_quote(quote: Quote) -> dict[str, object]:
    middle = (quote.bid + quote.ask) / 2
    return {"symbol": quote.symbol, "price": middle, "timestamp_ns": quote.timestamp_ns}


prices = rp.union(
    "prices",
    trades.map("traded", of_trade, into=Price),
    quotes.map("middle", of_quote, into=Price),
)
keyed = prices.partition("by-symbol", key="symbol")
bars = keyed.window("1s", rp.Tumbling("1s"), lateness="1s").fold("bars", price=rp.ohlc("price"))
times = bars.partition("by-time", key="window_start_ns", partitions=2)
sizes = trades.partition("by-both", key=("venue", "symbol")).fold("sizes", n=rp.sum("size"))
by_venue = sizes.partition("by-venue", key="venue", partitions=2)
pipeline = (
    bars.sink("out")
    .also(keyed.fold("newest", price=rp.last("price"), n=rp.count()).sink("ever"))
    .also(trades.sink("bought"))
    .also(times.fold("seconds", n=rp.count(), high=rp.max("price_high")).sink("whole"))
    .also(by_venue.fold("venues", middle=rp.median("n"), n=rp.sum("n")).sink("venued"))
)

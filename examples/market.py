"""VWAP by symbol and minute, and what all of them together have turned over.

``make demo-kafka`` runs it over topics of Kafka; it reads anything else as well:
``ripple run examples/market.py --source trades.csv --sink vwap=- --sink portfolio=portfolio.csv``
"""

import ripple as rp


@rp.record(version=1)
class Trade:
    """A trade as exchanges report it."""

    symbol: str
    price: float = rp.field(finite=True)
    size: int = rp.field(gt=0)
    timestamp_ns: rp.Timestamp
    venue: str


pipeline = (
    rp.Pipeline("market")
    .source("trades", Trade)
    .derive("value", notional=rp.col("price") * rp.col("size"))
    .partition("by-symbol", key="symbol")
    .window("1min", rp.Tumbling("60s"), lateness="60s")
    .fold(
        "minutes", vwap=rp.vwap("price", "size"), volume=rp.sum("size"), turnover=rp.sum("notional")
    )
    .partition("everything", key=())
    .fold("sums", turnover=rp.sum("turnover"), volume=rp.sum("volume"), rows=rp.count())
    .sink("vwap", of="minutes")
    .sink("portfolio", of="sums")
)

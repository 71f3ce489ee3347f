"""What all symbols together are worth: a view over a view, in one graph.

``ripple run examples/portfolio.py --source trades.csv --sink by-symbol=- --sink total=total.csv``
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
    rp.Pipeline("portfolio")
    .source("trades", Trade)
    .derive("value", notional=rp.col("price") * rp.col("size"))
    .partition("symbols", key="symbol")
    .fold("vwaps", vwap=rp.vwap("price", "size"), turnover=rp.sum("notional"))
    .partition("everything", key=())
    .fold("sums", portfolio=rp.sum("vwap"), turnover=rp.sum("turnover"), symbols=rp.count())
    .sink("by-symbol", of="vwaps")
    .sink("total", of="sums")
)

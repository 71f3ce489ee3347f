"""VWAP by symbol in one-minute windows.

``ripple run examples/vwap.py --source trades.csv --sink vwap.csv``
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
    rp.Pipeline("vwap-60s")
    .source("trades", Trade, topic="raw-trades")
    .partition("by-symbol", key="symbol")
    .window("1min", rp.Tumbling("60s"), lateness="60s")
    .fold(
        "vwap",
        vwap=rp.vwap("price", "size"),
        total_volume=rp.sum("size"),
        trade_count=rp.count(),
    )
    .sink("output", topic="vwap-results")
)

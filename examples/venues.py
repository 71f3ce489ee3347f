"""Turnover by venue, of trades that are divided by symbol: in a cluster they change partition.

``ripple run examples/venues.py --source trades.csv --sink by-venue=-``

``ripple plan examples/venues.py`` shows where: docs/repartition.md.
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
    rp.Pipeline("venues")
    .source("trades", Trade, key="symbol")
    .filter("round-lots", rp.col("size") >= 10)
    .derive("value", notional=rp.col("price") * rp.col("size"))
    .partition("venues", key="venue", partitions=4)
    .window("1min", rp.Tumbling("60s"), lateness="60s")
    .fold("turnover", turnover=rp.sum("notional"), trades=rp.count(), last=rp.last("price"))
    .sink("by-venue")
)

"""Trades that are keyed by symbol, folded by venue, and then windows that are over once more.

Records change partition twice: those of the source, and windows that are final.
"""

import ripple as rp


@rp.record
class Trade:
    """A trade; symbols are what the topic is keyed by."""

    symbol: str
    price: float
    size: int
    timestamp_ns: rp.Timestamp
    venue: str


pipeline = (
    rp.Pipeline("venues")
    .source("trades", Trade, out_of_order="20ms")
    .derive("value", notional=rp.col("price") * rp.col("size"), odd=rp.col("size") % 2)
    .partition("by-venue", key=("venue", "odd"), partitions=3)
    .window("short", rp.Tumbling("500ms"), lateness="100ms")
    .fold("seconds", turnover=rp.sum("notional"), last=rp.last("symbol"), n=rp.count())
    .partition("by-odd", key="odd", partitions=2)
    .fold("sums", turnover=rp.sum("turnover"), middle=rp.median("n"), windows=rp.count())
    .sink("by-second", of="seconds")
    .sink("ever", of="sums")
)

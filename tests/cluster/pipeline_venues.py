"""Volume by venue, of trades that are divided by symbol, in short windows and over all of them."""

from __future__ import annotations

import ripple as rp
from tests.records import SizedTrade

pipeline = (
    rp.Pipeline("venues")
    .source("trades", SizedTrade, key="symbol")
    .filter("not-odd", rp.col("size") > 20)
    .derive("class", decade=rp.col("size") % 10)
    .partition("by-venue", key=("venue", "decade"), partitions=3)
    .window("1s", rp.Tumbling("1s"), lateness="1s")
    .fold("sums", volume=rp.sum("size"), last=rp.last("price"), trades=rp.count())
    .partition("over-all", key="decade", partitions=2)
    .fold("all", middle=rp.median("volume"), last=rp.top_k("last", 2), trades=rp.sum("trades"))
    .sink("volume", of="sums")
    .sink("ever", of="all")
)

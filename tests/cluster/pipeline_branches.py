"""Large trades as they come, and views of all of them, in the partitions of the source."""

from __future__ import annotations

import ripple as rp
from tests.records import SizedTrade

trades = rp.Pipeline("branches").source("trades", SizedTrade)
named = trades.derive("value", notional=rp.col("price") * rp.col("size"))
by_symbol = named.partition("by-symbol", key="symbol")
bars = by_symbol.window("1s", rp.Tumbling("1s"), lateness="1s").fold("bars", v=rp.sum("notional"))
by_venue = trades.partition("by-venue", key=("venue", "symbol")).fold("venues", n=rp.count())
pipeline = (
    named.filter("of-more", rp.col("size") > 700)
    .sink("large", key="symbol")
    .also(bars.sink("out"))
    .also(by_venue.sink("counts"))
)

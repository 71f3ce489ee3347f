"""Trades joined with quotes at once, and folded with their corrections."""

import ripple as rp
from tests.cluster.pipeline_divided import Quote, Trade

market = rp.Pipeline("market")
trades = market.source("trades", Trade, time="timestamp_ns", out_of_order="40ms")
quotes = market.source("quotes", Quote, time="timestamp_ns", out_of_order="40ms")
now = trades.join_asof(
    "now", quotes, on="symbol", tolerance="1s", lateness="100ms", emit="eager"
).derive("with-worth", worth=rp.col("bid") * rp.col("size"))
totals = now.partition("by-symbol", key="symbol").fold(
    "totals", n=rp.count(), matched=rp.count("bid"), worth=rp.sum("worth"), high=rp.max("bid")
)
pairs = trades.join_interval(
    "met", quotes, on="symbol", within=("-20ms", "20ms"), how="full", lateness="100ms", emit="eager"
)
pipeline = totals.sink("out").also(now.sink("now-out")).also(pairs.sink("pairs-out"))

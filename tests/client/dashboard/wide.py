"""One row a symbol, for ever: as many rows as there are symbols."""

from __future__ import annotations

import ripple as rp
from tests.client.dashboard.market import Trade

pipeline = (
    rp.Pipeline("wide")
    .source("trades", Trade, key="symbol")
    .partition("by-symbol", key="symbol")
    .fold("prices", vwap=rp.vwap("price", "size"), volume=rp.sum("size"), trades=rp.count())
    .sink("vwap", of="prices")
)

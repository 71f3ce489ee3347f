"""Volume by symbol and session, that is until nobody has traded for a while."""

from __future__ import annotations

import ripple as rp
from tests.records import SizedTrade

pipeline = (
    rp.Pipeline("sessions")
    .source("trades", SizedTrade)
    .partition("by-symbol", key="symbol")
    .filter("not-odd", rp.col("size") > 20)
    .window("sessions", rp.Session("150ms"), lateness="1s")
    .fold("volume", volume=rp.sum("size"), middle=rp.median("price"))
    .sink("out", of="volume")
)

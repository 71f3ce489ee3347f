"""VWAP by symbol in short windows, corrected when trades come late."""

from __future__ import annotations

import ripple as rp
from tests.records import SizedTrade

pipeline = (
    rp.Pipeline("vwap-1s")
    .source("trades", SizedTrade)
    .partition("by-symbol", key="symbol")
    .window("1s", rp.Tumbling("1s"), lateness="1s")
    .fold("vwap", vwap=rp.vwap("price", "size"), highest=rp.max("price"), trades=rp.count())
    .sink("out", of="vwap")
)

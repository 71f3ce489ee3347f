"""A pipeline over a source with a partition that stays silent."""

import ripple as rp


@rp.record(version=1)
class Trade:
    symbol: str
    size: int
    timestamp_ns: rp.Timestamp


windows = (
    rp.Pipeline("idle")
    .source("trades", Trade, out_of_order="50ms", idle="300ms")
    .partition("by-symbol", key="symbol")
    .window("tenth", rp.Tumbling("100ms"), lateness="0s")
    .fold("sizes", size=rp.sum("size"), trades=rp.count())
)
pipeline = windows.sink("sizes-out")
both = windows.sink("sizes-out").sink("again", of="sizes")

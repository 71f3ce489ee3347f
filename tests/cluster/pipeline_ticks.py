"""Windows over the ticks of the clock, and over trades together with them."""

import ripple as rp

market = rp.Pipeline("market")
trades = market.source("trades", rp.Tick)
ticks = market.source("ticks", rp.Tick)
both = rp.union(
    "both", trades.derive("trade", kind=rp.lit(1)), ticks.derive("tick", kind=rp.lit(0))
)
pipeline = (
    both.partition("by-kind", key="kind")
    .window("moment", rp.Tumbling("100ms"), lateness="0s")
    .fold("counts", n=rp.count())
    .sink("counts-out", of="counts")
    .also(
        ticks.derive("beat", all=rp.lit("all"))
        .partition("whole", key="all")
        .window("beats", rp.Tumbling("100ms"), lateness="0s")
        .fold("beats-counted", n=rp.count())
        .sink("beats-out")
    )
)

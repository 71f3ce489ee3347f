import ripple as rp


@rp.record
class Trade:
    symbol: str
    price: float
    at_ns: rp.Timestamp


last, mean, deviation = rp.col("last"), rp.col("mean"), rp.col("deviation")
alerts = (
    rp.Pipeline("alerts")
    .source("trades", Trade)
    .partition("by-symbol", key="symbol")
    .window("five", rp.Sliding("5min", "1min"))
    .fold("stats", last=rp.last("price"), mean=rp.mean("price"), deviation=rp.stddev("price"))
    .filter("spread", deviation > 0)
    .derive("score", z=(last - mean) / deviation)
    .filter("far", rp.col("z").abs() > 2)
    .sink("alerts")
)
rp.collect(alerts, "csv:trades.csv?header").to_polars().write_csv("out.csv")

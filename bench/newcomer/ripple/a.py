import ripple as rp


@rp.record
class Trade:
    symbol: str
    venue: str
    price: float
    size: int
    at_ns: rp.Timestamp


bars = (
    rp.Pipeline("bars")
    .source("trades", Trade)
    .partition("by-symbol", key=("symbol", "venue"))
    .window("minute", rp.Tumbling("1min"))
    .fold("bar", price=rp.ohlc("price"), volume=rp.sum("size"), vwap=rp.vwap("price", "size"))
    .sink("bars")
)
rp.collect(bars, "csv:trades.csv?header").to_polars().write_csv("out.csv")

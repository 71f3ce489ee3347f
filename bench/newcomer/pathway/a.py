import pathway as pw

MINUTE_NS = 60_000_000_000


class Trade(pw.Schema):
    symbol: str
    venue: str
    price: float
    size: int
    at_ns: int


trades = pw.io.csv.read("trades.csv", schema=Trade, mode="static")
start = pw.this.at_ns // MINUTE_NS * MINUTE_NS
minutes = trades.with_columns(start=start).groupby(pw.this.symbol, pw.this.venue, pw.this.start)
bars = minutes.reduce(
    pw.this.symbol,
    pw.this.venue,
    pw.this.start,
    first=pw.reducers.argmin(pw.this.at_ns),
    high=pw.reducers.max(pw.this.price),
    low=pw.reducers.min(pw.this.price),
    last=pw.reducers.argmax(pw.this.at_ns),
    volume=pw.reducers.sum(pw.this.size),
    value=pw.reducers.sum(pw.this.price * pw.this.size),
)
rows = bars.select(
    pw.this.symbol,
    pw.this.venue,
    pw.this.start,
    open=trades.ix(pw.this.first).price,
    high=pw.this.high,
    low=pw.this.low,
    close=trades.ix(pw.this.last).price,
    volume=pw.this.volume,
    vwap=pw.this.value / pw.this.volume,
)
pw.io.csv.write(rows, "out.csv")
pw.run(monitoring_level=pw.MonitoringLevel.NONE)

import pathway as pw

MINUTE_NS = 60_000_000_000


class Trade(pw.Schema):
    symbol: str
    price: float
    at_ns: int


trades = pw.io.csv.read("trades.csv", schema=Trade, mode="static")
five = pw.temporal.sliding(hop=MINUTE_NS, duration=5 * MINUTE_NS, origin=0)
windows = trades.windowby(trades.at_ns, window=five, instance=trades.symbol)
sums = windows.reduce(
    symbol=pw.this._pw_instance,
    start=pw.this._pw_window_start,
    last=pw.reducers.argmax(pw.this.at_ns),
    number=pw.reducers.count(),
    mean=pw.reducers.avg(pw.this.price),
    squares=pw.reducers.sum(pw.this.price * pw.this.price),
)
spread = pw.this.squares - pw.this.number * pw.this.mean * pw.this.mean
several = sums.with_columns(spread=spread).filter((pw.this.number > 1) & (pw.this.spread > 1e-6))
score = (trades.ix(pw.this.last).price - pw.this.mean) / (
    (pw.this.spread / (pw.this.number - 1)) ** 0.5
)
alerts = several.select(pw.this.symbol, pw.this.start, score=score)
pw.io.csv.write(alerts.filter((pw.this.score > 2) | (pw.this.score < -2)), "out.csv")
pw.run(monitoring_level=pw.MonitoringLevel.NONE)

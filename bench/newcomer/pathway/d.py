import pathway as pw


class Fill(pw.Schema):
    account: str
    symbol: str
    quantity: int
    price: float


class Quote(pw.Schema):
    symbol: str
    bid: float
    at_ns: int


fills = pw.io.csv.read("fills.csv", schema=Fill, mode="static")
quotes = pw.io.csv.read("quotes.csv", schema=Quote, mode="static")
held = fills.groupby(pw.this.account, pw.this.symbol).reduce(
    pw.this.account,
    pw.this.symbol,
    quantity=pw.reducers.sum(pw.this.quantity),
    cost=pw.reducers.sum(pw.this.quantity * pw.this.price),
)
newest = quotes.groupby(pw.this.symbol).reduce(
    pw.this.symbol, last=pw.reducers.argmax(pw.this.at_ns)
)
bids = newest.select(pw.this.symbol, bid=quotes.ix(pw.this.last).bid)
rows = held.join(bids, pw.left.symbol == pw.right.symbol).select(
    pw.left.account,
    pw.left.symbol,
    pw.left.quantity,
    profit=pw.left.quantity * pw.right.bid - pw.left.cost,
)
pw.io.csv.write(rows, "out.csv")
pw.run(monitoring_level=pw.MonitoringLevel.NONE)

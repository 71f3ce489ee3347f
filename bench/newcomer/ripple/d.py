import ripple as rp


@rp.record
class Fill:
    account: str
    symbol: str
    quantity: int
    price: float


@rp.record
class Quote:
    symbol: str
    bid: float
    at_ns: rp.Timestamp


book, cost = rp.Pipeline("book"), Fill.quantity * Fill.price
held = book.source("fills", Fill).derive("paid", cost=cost).partition("held", ("account", "symbol"))
sums = held.fold("sums", quantity=rp.sum("quantity"), cost=rp.sum("cost"))
bids = book.source("quotes", Quote).partition("by-symbol", "symbol").fold("bid", bid=rp.last("bid"))
marked = sums.join("marked", bids, on="symbol")
profit = marked.derive("profit", profit=rp.col("quantity") * rp.col("bid") - rp.col("cost"))
places = {name: f"csv:{name}.csv?header" for name in ("fills", "quotes")}
rp.collect(profit.sink("positions"), places).to_polars().write_csv("out.csv")

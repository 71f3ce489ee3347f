import bytewax.operators as op
from bytewax.connectors.files import CSVSource, FileSink
from bytewax.dataflow import Dataflow


def change(state, row):
    bid, held = state or (None, {})
    if "bid" in row:
        bid, changed = float(row["bid"]), list(held)
    else:
        account, quantity = row["account"], int(row["quantity"])
        before, cost = held.get(account, (0, 0.0))
        held[account] = before + quantity, cost + quantity * float(row["price"])
        changed = [account] if bid is not None else []
    rows = [(account, *held[account], bid) for account in changed]
    return (bid, held), rows


def lines(item):
    symbol, rows = item
    for account, quantity, cost, bid in rows:
        yield f"{account},{symbol}", (quantity, quantity * bid - cost)


flow = Dataflow("positions")
fills = op.key_on(
    "fill", op.input("fills", flow, CSVSource("fills.csv")), lambda row: row["symbol"]
)
quotes = op.key_on(
    "quote", op.input("quotes", flow, CSVSource("quotes.csv")), lambda row: row["symbol"]
)
changed = op.stateful_map("book", op.merge("both", fills, quotes), change)
newest = op.reduce_final("newest", op.flat_map("rows", changed, lines), lambda _, after: after)
text = op.map("line", newest, lambda item: (item[0], f"{item[0]},{item[1][0]},{item[1][1]}"))
op.output("out", text, FileSink("out.csv"))

import csv
from datetime import datetime, timedelta

import csp
from csp import ts

EPOCH = datetime(1970, 1, 1)


class Fill(csp.Struct):
    account: str
    symbol: str
    quantity: int
    price: float


class Quote(csp.Struct):
    symbol: str
    bid: float


@csp.node
def book(fill: ts[Fill], quote: ts[Quote]):
    with csp.state():
        s_held = {}
        s_bids = {}
    with csp.stop():
        with open("out.csv", "w") as out:
            for (account, symbol), (quantity, cost) in s_held.items():
                out.write(f"{account},{symbol},{quantity},{quantity * s_bids[symbol] - cost}\n")
    if csp.ticked(fill):
        quantity, cost = s_held.get((fill.account, fill.symbol), (0, 0.0))
        sums = quantity + fill.quantity, cost + fill.quantity * fill.price
        s_held[fill.account, fill.symbol] = sums
    if csp.ticked(quote):
        s_bids[quote.symbol] = quote.bid


def rows(name):
    with open(name, newline="") as file:
        for row in csv.DictReader(file):
            yield EPOCH + timedelta(microseconds=int(row.pop("at_ns")) // 1000), row


def of_fill(row):
    account, symbol = row["account"], row["symbol"]
    quantity, price = int(row["quantity"]), float(row["price"])
    return Fill(account=account, symbol=symbol, quantity=quantity, price=price)


def of_quote(row):
    return Quote(symbol=row["symbol"], bid=float(row["bid"]))


@csp.graph
def flow():
    fills = csp.curve(Fill, [(at, of_fill(row)) for at, row in rows("fills.csv")])
    book(fills, csp.curve(Quote, [(at, of_quote(row)) for at, row in rows("quotes.csv")]))


start = min(next(rows("fills.csv"))[0], next(rows("quotes.csv"))[0])
csp.run(flow, starttime=start, endtime=timedelta(days=1))

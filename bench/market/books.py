"""Queries of order books: the top after each message, and the levels at the end."""

from __future__ import annotations

from functools import partial

import ripple as rp
from bench.market.data import Tables
from bench.market.query import Query, Rows
from bench.market.records import Message

MOST = 1_000  # levels of a side
BOOK = partial(
    rp.OrderBook,
    price="price_ticks",
    action="action",
    order="order_id",
    sequence="sequence",
    rule="dense",
    begins="empty",
)


def _tops(_: Tables) -> rp.Pipeline:
    messages = rp.Pipeline("m8").source("book", Message)
    return messages.scan("tops", key="symbol", step=BOOK(), settled=True).sink("rows")


def _plain_tops(given: dict[str, Rows]) -> Rows:
    """Return the top after each message that changes it, from the orders that are left."""
    orders: dict[int, list[int]] = {}
    levels: dict[tuple[str, str], dict[int, int]] = {}
    shown: dict[str, tuple[int | None, ...]] = {}
    found = []

    def move(symbol: str, side: str, price: int, by: int) -> None:
        own = levels.setdefault((symbol, side), {})
        own[price] = own.get(price, 0) + by
        if not own[price]:
            del own[price]

    for symbol, action, side, number, price, size, sequence, _ in given["book"]:
        before = orders.pop(number, None)
        if before is not None:
            move(symbol, side, *(before[0], -before[1]))
        left = [price, size] if action != "C" else [before[0], before[1] - size]
        if left[1]:
            orders[number] = left
            move(symbol, side, *left)
        bids, asks = levels.get((symbol, "B")), levels.get((symbol, "A"))
        bid = max(bids) if bids else None
        ask = min(asks) if asks else None
        top = (bid, bids[bid] if bids else None, ask, asks[ask] if asks else None)
        if shown.get(symbol) != top:
            shown[symbol] = top
            found.append((symbol, sequence, *top))
    return found


def _levels(_: Tables) -> rp.Pipeline:
    book = BOOK(show="levels", depth=MOST)
    messages = rp.Pipeline("m8").source("book", Message)
    return (
        messages.scan("levels", key="symbol", step=book, settled=True)
        .partition("by-level", key=["symbol", "side", "price"])
        .fold("last", size=rp.last("size"), orders=rp.last("orders"))
        .filter("there", rp.col("size") > 0)
        .sink("rows")
    )


_LEVELS = """
    WITH newest AS (
        FROM book WHERE action <> 'C'
        QUALIFY row_number() OVER (PARTITION BY order_id ORDER BY off DESC) = 1
    ), rest AS (
        SELECT n.symbol, n.side, n.price_ticks AS price,
            n.size - coalesce(sum(c.size), 0) AS size
        FROM newest n LEFT JOIN book c
        ON c.order_id = n.order_id AND c.action = 'C' AND c.off > n.off
        GROUP BY n.order_id, n.symbol, n.side, n.price_ticks, n.size
    )
    SELECT symbol, side, price, sum(size)::BIGINT AS size, count(*) AS orders
    FROM rest WHERE size > 0 GROUP BY ALL
"""

QUERIES = (
    Query(
        "m8",
        "the top of 20 books after each message",
        ("book",),
        ("symbol", "sequence", "bid", "bid_size", "ask", "ask_size"),
        _tops,
        "f109882b56dffb12",
        plain=_plain_tops,
    ),
    Query(
        "m8b",
        "the levels of these books at the end",
        ("book",),
        ("symbol", "side", "price", "size", "orders"),
        _levels,
        "91107cbfad9de943",
        _LEVELS,
    ),
)

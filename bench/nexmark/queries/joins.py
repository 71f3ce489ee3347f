"""Queries that join auctions, persons and bids: as tables, or by event time."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

import ripple as rp
from bench.nexmark.queries.query import Query
from bench.nexmark.queries.records import WholeBid

TEN_NS = 10_000_000_000
LONGEST = "1s"  # an auction lasts a third of it, at most


@rp.record
class Person:
    """A person's name and place."""

    id: int
    name: str
    city: str
    state: str
    date_time: rp.Timestamp


@rp.record
class Auction:
    """An auction: what, by whom, from when until when."""

    id: int
    item_name: str
    date_time: rp.Timestamp
    expires: int
    seller: int
    category: int


@rp.record
class Offered:
    """A bid's numbers."""

    auction: int
    bidder: int
    price: int
    date_time: rp.Timestamp


@rp.record
class WholeAuction:
    """An auction with most of its fields."""

    id: int
    item_name: str
    description: str
    initial_bid: int
    reserve: int
    date_time: rp.Timestamp
    expires: int
    seller: int
    category: int


@rp.record
class Closing:
    """An auction at its end."""

    id: int
    date_time: int
    expires: rp.Timestamp
    seller: int


@rp.record
class Priced:
    """The mean price of a seller."""

    seller: int
    avg_price: float


@rp.record
class WholePerson:
    """A person with all its fields."""

    id: int
    name: str
    email_address: str
    credit_card: str
    city: str
    state: str
    date_time: rp.Timestamp


@rp.record
class Seen:
    """A new person, or without a name a seller."""

    id: int
    name: str
    date_time: rp.Timestamp


def q3() -> rp.Pipeline:
    p = rp.Pipeline("q3")
    sellers = (
        p.source("person", Person)
        .filter("near", rp.col("state").is_in(["or", "id", "ca"]))
        .partition("by-person", key="id")
        .fold("seller", of=rp.last_row(["name", "city", "state"]))
    )
    return (
        p.source("auction", Auction)
        .filter("tenth", rp.col("category") == 10)
        .partition("by-auction", key="id")
        .fold("newest", seller=rp.last("seller"))
        .join("sold-by", sellers, left_on="seller", right_on="id")
        .sink("rows")
    )


def _in_time(name: str, fields: list[str]) -> rp.Pipeline:
    """Return the bids between begin and end of their auction, with fields of it."""
    p = rp.Pipeline(name)
    auctions = (
        p.source("auction", Auction)
        .partition("by-auction", key="id")
        .fold("newest", of=rp.last_row([*fields, "date_time", "expires"]))
    )
    at = rp.col("date_time")
    return (
        p.source("bid", Offered)
        .partition("by-bid", key=("auction", "date_time", "bidder"))
        .fold("bids", price=rp.max("price"))
        .join("with-auction", auctions, left_on="auction", right_on="id")
        .filter("in-time", (at >= rp.col("of_date_time")) & (at <= rp.col("of_expires")))
    )


def q4() -> rp.Pipeline:
    return (
        _in_time("q4", ["category"])
        .partition("by-auction-there", key=("auction", "of_category"))
        .fold("final", final=rp.max("price"))
        .partition("by-category", key="of_category")
        .fold("mean", avg_price=rp.mean("final"))
        .sink("rows")
    )


def _mean(seller: Any) -> dict[str, Any]:
    return {"seller": seller.seller, "avg_price": sum(seller.last) / len(seller.last)}


def q6() -> rp.Pipeline:
    p = rp.Pipeline("q6")
    closings = p.source("auction", Closing, time="expires", out_of_order=LONGEST)
    return (
        closings.join_interval(
            "with-bids",
            p.source("bid", Offered),
            left_on="id",
            right_on="auction",
            within=(f"-{LONGEST}", 0),
            lateness=0,
            suffix="_bid",
            emit="final",
        )
        .filter("in-time", rp.col("date_time_bid") >= rp.col("date_time"))
        .partition("by-auction", key=("id", "seller", "expires"))
        .fold("final", final=rp.max("price"))
        .partition("by-seller", key="seller")
        .fold("last-ten", last=rp.top_rows(10, "expires", "final"))
        .map("mean", _mean, into=Priced)
        .sink("rows")
    )


def _seller(auctions: dict[str, Any]) -> dict[str, Any]:
    seller, at = auctions["seller"], auctions["date_time"]
    return {"id": seller, "name": np.full(len(seller), ""), "date_time": at}


def _person(persons: dict[str, Any]) -> dict[str, Any]:
    return {name: persons[name] for name in ("id", "name", "date_time")}


def q8() -> rp.Pipeline:
    p = rp.Pipeline("q8")
    sellers = p.source("auction", Auction).map("sold", _seller, into=Seen, batch=True)
    persons = p.source("person", Person).map("came", _person, into=Seen, batch=True)
    seen = rp.union("seen", persons, sellers)
    new, selling = (
        some.partition(f"by-{name}", key="id")
        .window(f"ten-seconds-{name}", rp.Tumbling(TEN_NS))
        .fold(name, **{name: rp.last("name")})
        for name, some in (
            ("new", seen.filter("named", rp.col("name") != "")),
            ("selling", seen.filter("nameless", rp.col("name") == "")),
        )
    )
    return new.join("new-sellers", selling, on=["id", "window_start_ns"]).sink("rows")


def q9() -> rp.Pipeline:
    fields = ["item_name", "seller", "category"]
    shown = [f"of_{field}" for field in fields]
    return (
        _in_time("q9", fields)
        .partition("by-auction-there", key="auction")
        .fold("won", by=rp.arg_max("price", ["bidder", "price", "date_time", *shown]))
        .sink("rows")
    )


@cache
def side_input() -> rp.Constant:
    rows = [{"key": at, "value": str(at)} for at in range(10_000)]
    return rp.constant("side-input", rows, key="key")


def q13() -> rp.Pipeline:
    return (
        rp.Pipeline("q13")
        .source("bid", Offered)
        .derive("of", key=rp.col("auction") % 10_000)
        .join("with-side-input", side_input(), on="key")
        .sink("rows")
    )


def q20() -> rp.Pipeline:
    p = rp.Pipeline("q20")
    auctions = p.source("auction", WholeAuction).filter("tenth", rp.col("category") == 10)
    return (
        p.source("bid", WholeBid)
        .join_asof(
            "with-auction",
            auctions,
            left_on="auction",
            right_on="id",
            how="inner",
            lateness=0,
            emit="final",
        )
        .sink("rows")
    )


def q23() -> rp.Pipeline:
    p = rp.Pipeline("q23")
    persons = p.source("person", WholePerson).partition("by-person", key="id")
    auctions = p.source("auction", WholeAuction).partition("by-auction", key="id")
    bids = p.source("bid", WholeBid).partition(
        "by-bid", key=("auction", "bidder", "price", "date_time")
    )
    bidders = persons.fold(
        "bidders", of=rp.last_row(["name", "email_address", "credit_card", "city", "state"])
    )
    sold = auctions.fold(
        "sold",
        of=rp.last_row(["item_name", "description", "initial_bid", "reserve", "expires"]),
        began_ns=rp.last("date_time"),
        category=rp.last("category"),
        seller=rp.last("seller"),
    )
    # Sellers first: they are fewer than the bids, of which only the last join has rows then.
    sellers = sold.join("sellers", bidders, left_on="seller", right_on="id", suffix="_seller")
    return (
        bids.fold("bids", bid=rp.last_row(["channel", "url", "extra"]))
        .join("also-sells", sellers, left_on="bidder", right_on="seller")
        .sink("rows")
    )


IN_TIME = """
    FROM auction JOIN bid ON auction.id = bid.auction
    WHERE bid.date_time BETWEEN auction.date_time AND auction.expires
"""

QUERIES = (
    Query(
        "q3",
        "sellers of three states",
        q3,
        """
        SELECT auction.id, seller, name AS of_name, city AS of_city, state AS of_state
        FROM auction JOIN person ON seller = person.id
        WHERE category = 10 AND state IN ('or', 'id', 'ca')
        """,
        "the generator writes states in small letters",
        topics=("auction", "person"),
    ),
    Query(
        "q4",
        "mean price of the winning bids of a category",
        q4,
        f"""
        SELECT category AS of_category, avg(final) AS avg_price
        FROM (SELECT auction.id, category, max(price) AS final {IN_TIME} GROUP BY ALL)
        GROUP BY category
        """,
        "the mean is a float, not rounded down",
        topics=("auction", "bid"),
    ),
    Query(
        "q6",
        "mean price of the last ten closed auctions of a seller",
        q6,
        f"""
        SELECT seller, avg(final) AS avg_price
        FROM (SELECT auction.id, seller, expires, max(price) AS final {IN_TIME}
              GROUP BY auction.id, seller, expires
              QUALIFY row_number() OVER (PARTITION BY seller
                                         ORDER BY expires DESC, auction.id) <= 10)
        GROUP BY seller
        """,
        "a row a seller; the last ten by their end (the SQL: eleven, by their winning bid)",
        topics=("auction", "bid"),
    ),
    Query(
        "q8",
        "new persons who sell in the same ten seconds",
        q8,
        f"""
        SELECT DISTINCT person.id AS id, name AS new,
               person.date_time // {TEN_NS} * {TEN_NS} AS window_start_ns
        FROM person JOIN auction ON person.id = seller
         AND person.date_time // {TEN_NS} = auction.date_time // {TEN_NS}
        """,
        topics=("auction", "person"),
    ),
    Query(
        "q9",
        "winning bid of an auction",
        q9,
        f"""
        SELECT auction.id AS auction, bidder AS by_bidder, price AS by_price,
               bid.date_time AS by_date_time, item_name AS by_of_item_name,
               seller AS by_of_seller, category AS by_of_category
        {IN_TIME}
        QUALIFY row_number() OVER (PARTITION BY auction.id
                                   ORDER BY price DESC, bid.date_time, bidder) <= 1
        """,
        "some fields of the auction; of equal prices at one time that of the smallest bidder",
        topics=("auction", "bid"),
    ),
    Query(
        "q13",
        "bids with a row of a table",
        q13,
        """
        SELECT auction, bidder, price, date_time, auction % 10000 AS key, value
        FROM bid JOIN (SELECT i AS key, i::VARCHAR AS value FROM range(10000) AS one(i)) AS side
          ON auction % 10000 = side.key
        """,
        "the table never changes; with the number of its row",
    ),
    Query(
        "q20",
        "bids with their auction, of one category",
        q20,
        """
        SELECT auction, bidder, price, channel, url, bid.date_time AS date_time, bid.extra AS extra,
               item_name, description, initial_bid, reserve, expires, seller, category
        FROM bid JOIN auction ON auction = id
        WHERE category = 10 AND auction.date_time <= bid.date_time
        """,
        "an auction's bids are those after its begin; without the auction's extra field",
        topics=("auction", "bid"),
    ),
    Query(
        "q23",
        "bids by sellers, with all their auctions",
        q23,
        """
        SELECT auction, bidder, price, bid.date_time AS date_time, channel AS bid_channel,
               url AS bid_url, bid.extra AS bid_extra, name AS of_name,
               email_address AS of_email_address, credit_card AS of_credit_card,
               city AS of_city, state AS of_state, auction.id AS id, item_name AS of_item_name,
               description AS of_description, initial_bid AS of_initial_bid,
               reserve AS of_reserve, expires AS of_expires, auction.date_time AS began_ns, category
        FROM (FROM bid QUALIFY row_number() OVER (PARTITION BY auction, bidder, price, date_time
                                                  ORDER BY place DESC) = 1) bid
        JOIN person ON bidder = person.id JOIN auction ON bidder = seller
        """,
        "without the extra fields of persons and auctions; of equal bids at one time the last one",
        topics=("auction", "bid", "person"),
    ),
)

"""Queries of windows of time."""

from __future__ import annotations

import ripple as rp
from bench.nexmark.queries.query import Query, reading
from bench.nexmark.queries.records import Bid


@rp.record
class Asked:
    """A bid's auction and time."""

    auction: int
    date_time: rp.Timestamp


@rp.record
class Bidding:
    """A bid's bidder and time."""

    bidder: int
    date_time: rp.Timestamp


WINDOW = ("window_start_ns", "window_end_ns")


def q5() -> rp.Pipeline:
    return (
        reading("q5", Asked)
        .partition("by-auction", key="auction")
        .window("hop", rp.Sliding("10s", "2s"))
        .fold("bids", num=rp.count())
        .partition("by-window", key=WINDOW)
        .fold("most", most=rp.arg_max("num", ["auction", "num"]))
        .sink("rows")
    )


def q7() -> rp.Pipeline:
    return (
        reading("q7", Bid)
        .partition("by-auction", key="auction")
        .window("ten-seconds", rp.Tumbling("10s"))
        .fold("dearest", bid=rp.arg_max("price", ["bidder", "price", "date_time", "extra"]))
        .partition("by-window", key=WINDOW)
        .fold(
            "all",
            top=rp.arg_max(
                "bid_price",
                ["auction", "bid_bidder", "bid_price", "bid_date_time", "bid_extra"],
            ),
        )
        .sink("rows")
    )


def q11() -> rp.Pipeline:
    return (
        reading("q11", Bidding)
        .partition("by-bidder", key="bidder")
        .window("active", rp.Session("10s"))
        .fold("bids", bid_count=rp.count())
        .sink("rows")
    )


def q12() -> rp.Pipeline:
    return (
        reading("q12", Bidding)
        .partition("by-bidder", key="bidder")
        .window("ten-seconds", rp.Tumbling("10s"))
        .fold("bids", bid_count=rp.count())
        .sink("rows")
    )


QUERIES = (
    Query(
        "q5",
        "auction with the most bids",
        q5,
        """
        SELECT window_start_ns, window_start_ns + 10_000_000_000 AS window_end_ns,
               auction AS most_auction, count(*) AS most_num
        FROM (SELECT auction, (date_time // 2_000_000_000 - hop) * 2_000_000_000 AS window_start_ns
              FROM bid, range(5) hops(hop))
        GROUP BY auction, window_start_ns
        QUALIFY row_number() OVER (PARTITION BY window_start_ns
                                   ORDER BY count(*) DESC, auction) = 1
        """,
        "of several auctions with as many bids the one with the smallest number",
    ),
    Query(
        "q7",
        "dearest bid of ten seconds",
        q7,
        """
        SELECT date_time // 10_000_000_000 * 10_000_000_000 AS window_start_ns,
               auction AS top_auction, bidder AS top_bid_bidder, price AS top_bid_price,
               date_time AS top_bid_date_time, extra AS top_bid_extra
        FROM bid
        QUALIFY row_number() OVER (PARTITION BY date_time // 10_000_000_000
                                   ORDER BY price DESC, auction, date_time, place) = 1
        """,
        "of several dearest bids one; a window does not have its end",
    ),
    Query(
        "q11",
        "bids of a session",
        q11,
        """
        SELECT bidder, count(*) AS bid_count, min(date_time) AS window_start_ns,
               max(date_time) + 10_000_000_000 AS window_end_ns
        FROM (SELECT *, sum(begins) OVER (PARTITION BY bidder ORDER BY date_time, place) AS session
              FROM (SELECT *, coalesce(date_time - lag(date_time) OVER
                              (PARTITION BY bidder ORDER BY date_time, place)
                              >= 10_000_000_000, true)::INT AS begins FROM bid))
        GROUP BY bidder, session
        """,
    ),
    Query(
        "q12",
        "bids of ten seconds",
        q12,
        """
        SELECT bidder, count(*) AS bid_count,
               date_time // 10_000_000_000 * 10_000_000_000 AS window_start_ns
        FROM bid GROUP BY ALL
        """,
        "windows of event time: those of the clock cannot be replayed",
    ),
)

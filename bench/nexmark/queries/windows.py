"""Queries of windows of time."""

from __future__ import annotations

import ripple as rp
from bench.nexmark.queries.query import Query, reading


@rp.record
class Bidding:
    """Who bids, and when."""

    bidder: int
    date_time: rp.Timestamp


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

"""Queries of single bids: none is held, and each result row is one of the input."""

from __future__ import annotations

import ripple as rp
from bench.nexmark.queries.query import Query, reading
from bench.nexmark.queries.records import Addressed, Bid

CHANNEL_ID = "(&|^)channel_id=([^&]*)"
CHANNELS = {"apple": "0", "google": "1", "facebook": "2", "baidu": "3"}


@rp.record
class Priced:
    """The fields for a bid's price."""

    auction: int
    price: int
    date_time: rp.Timestamp


def q0() -> rp.Pipeline:
    return reading("q0", Bid).sink("rows")


def q1() -> rp.Pipeline:
    return reading("q1", Bid).derive("in-euro", euro=rp.col("price") * 908 / 1000).sink("rows")


def q2() -> rp.Pipeline:
    return reading("q2", Priced).filter("some", rp.col("auction") % 123 == 0).sink("rows")


def q10() -> rp.Pipeline:
    at = rp.col("date_time").dt
    return (
        reading("q10", Bid)
        .derive("filed", dt=at.to_string("%F"), hm=at.to_string("%R"))
        .sink("rows")
    )


def q14() -> rp.Pipeline:
    hour = rp.col("date_time").dt.hour()
    night = rp.when((hour <= 6) | (hour >= 20)).then("nightTime").otherwise("otherTime")
    return (
        reading("q14", Bid)
        .derive("in-euro", euro=rp.col("price") * 908 / 1000)
        .filter("range", (rp.col("euro") > 1_000_000) & (rp.col("euro") < 50_000_000))
        .derive(
            "counted",
            bid_time_type=rp.when(hour.is_between(8, 18)).then("dayTime").otherwise(night),
            c_counts=rp.col("extra").str.count_matches("c", literal=True),
        )
        .sink("rows")
    )


def q21() -> rp.Pipeline:
    number = rp.col("url").str.extract(CHANNEL_ID, 2)
    for channel, known in CHANNELS.items():
        number = rp.when(rp.col("lower") == channel).then(known).otherwise(number)
    return (
        reading("q21", Addressed)
        .derive("small-letters", lower=rp.col("channel").str.to_lowercase())
        .derive("channelled", channel_id=number)
        .filter("known", rp.col("channel_id").is_not_null())
        .sink("rows")
    )


def q22() -> rp.Pipeline:
    parts = rp.col("url").str.split("/").list
    return (
        reading("q22", Addressed)
        .derive("divided", dir1=parts.get(3), dir2=parts.get(4), dir3=parts.get(5))
        .sink("rows")
    )


IN_EURO = "CAST(CAST(0.908 * price AS DECIMAL(23, 3)) AS DOUBLE)"
AS_FLOAT = "the price is the double nearest to the decimal number"

QUERIES = (
    Query("q0", "pass", q0, "SELECT auction, bidder, price, date_time, extra FROM bid"),
    Query(
        "q1",
        "convert the price",
        q1,
        f"SELECT auction, bidder, {IN_EURO} AS euro, date_time, extra FROM bid",
        AS_FLOAT,
    ),
    Query("q2", "some auctions", q2, "SELECT auction, price FROM bid WHERE mod(auction, 123) = 0"),
    Query(
        "q10",
        "file by day and minute",
        q10,
        """
        SELECT auction, bidder, price, date_time, extra,
               strftime(moment, '%Y-%m-%d') AS dt, strftime(moment, '%H:%M') AS hm
        FROM bid
        """,
        "rows with the names of their folders, not files in them",
    ),
    Query(
        "q14",
        "calculate, filter, count characters",
        q14,
        f"""
        SELECT auction, bidder, {IN_EURO} AS euro,
               CASE WHEN hour(moment) >= 8 AND hour(moment) <= 18 THEN 'dayTime'
                    WHEN hour(moment) <= 6 OR hour(moment) >= 20 THEN 'nightTime'
                    ELSE 'otherTime' END AS bid_time_type,
               date_time, extra, length(extra) - length(replace(extra, 'c', '')) AS c_counts
        FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000
        """,
        AS_FLOAT,
    ),
    Query(
        "q21",
        "number of the channel",
        q21,
        r"""
        SELECT * FROM (
            SELECT auction, bidder, price, channel,
                   CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1'
                        WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3'
                        ELSE CASE WHEN regexp_matches(url, '(&|^)channel_id=([^&]*)')
                             THEN regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) END
                        END AS channel_id
            FROM bid)
        WHERE channel_id IS NOT NULL
        """,
    ),
    Query(
        "q22",
        "folders of the address",
        q22,
        """
        SELECT auction, bidder, price, channel, split_part(url, '/', 4) AS dir1,
               split_part(url, '/', 5) AS dir2, split_part(url, '/', 6) AS dir3
        FROM bid
        """,
    ),
)

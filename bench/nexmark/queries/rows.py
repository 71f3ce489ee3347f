"""Queries of single bids: none is held, and each result row is one of the input."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import ripple as rp
from bench.nexmark.queries.query import Query, reading
from bench.nexmark.queries.records import Addressed, Bid

Columns = Mapping[str, Any]

CHANNEL_ID = "(?:&|^)channel_id=(?P<id>[^&]*)"
CHANNELS = {"apple": "0", "google": "1", "facebook": "2", "baidu": "3"}


@rp.record
class Priced:
    """The fields for a bid's price."""

    auction: int
    price: int
    date_time: rp.Timestamp


@rp.record
class Filed:
    """A bid with its folder."""

    auction: int
    bidder: int
    price: int
    date_time: rp.Timestamp
    extra: str
    dt: str
    hm: str


@rp.record
class Counted:
    """A bid in euro, with the time of day and the count of the character c."""

    auction: int
    bidder: int
    euro: float
    bid_time_type: str
    date_time: rp.Timestamp
    extra: str
    c_counts: int


@rp.record
class Channelled:
    """A bid with the number of its channel, if there is one."""

    auction: int
    bidder: int
    price: int
    channel: str
    date_time: rp.Timestamp
    channel_id: str | None


@rp.record
class Divided:
    """A bid with the folders of its address."""

    auction: int
    bidder: int
    price: int
    channel: str
    date_time: rp.Timestamp
    dir1: str
    dir2: str
    dir3: str


def filed(bids: Columns) -> Columns:
    """Add the day and the minute, as texts."""
    times = pa.array(bids["date_time"]).cast(pa.timestamp("ns"))
    return {**bids, "dt": pc.strftime(times, "%Y-%m-%d"), "hm": pc.strftime(times, "%H:%M")}


def counted(bids: Columns) -> Columns:
    """Add the time of day and the number of c's."""
    hour = pc.hour(pa.array(bids["date_time"]).cast(pa.timestamp("ns")))
    is_day = pc.and_(pc.greater_equal(hour, 8), pc.less_equal(hour, 18))
    is_night = pc.or_(pc.less_equal(hour, 6), pc.greater_equal(hour, 20))
    return {
        **{name: bids[name] for name in ("auction", "bidder", "euro", "date_time", "extra")},
        "bid_time_type": pc.if_else(
            is_day, "dayTime", pc.if_else(is_night, "nightTime", "otherTime")
        ),
        "c_counts": pc.count_substring(pa.array(bids["extra"], pa.string()), "c").cast(pa.int64()),
    }


def channelled(bids: Columns) -> Columns:
    """Add the channel's number, or else the address's."""
    urls, lower = pa.array(bids["url"], pa.string()), pc.utf8_lower(pa.array(bids["channel"]))
    known = pc.index_in(lower, pa.array(list(CHANNELS)))
    found = pc.struct_field(pc.extract_regex(urls, CHANNEL_ID), "id")
    return {
        **{name: bids[name] for name in ("auction", "bidder", "price", "channel", "date_time")},
        "channel_id": pc.coalesce(pc.take(pa.array(list(CHANNELS.values())), known), found),
    }


def divided(bids: Columns) -> Columns:
    """Add three folders of the address."""
    parts = pc.split_pattern(pa.array(bids["url"], pa.string()), "/")
    return {
        **{name: bids[name] for name in ("auction", "bidder", "price", "channel", "date_time")},
        **{f"dir{number}": pc.list_element(parts, 2 + number) for number in (1, 2, 3)},
    }


def q0() -> rp.Pipeline:
    return reading("q0", Bid).sink("rows")


def q1() -> rp.Pipeline:
    return reading("q1", Bid).derive("in-euro", euro=rp.col("price") * 908 / 1000).sink("rows")


def q2() -> rp.Pipeline:
    return reading("q2", Priced).filter("some", rp.col("auction") % 123 == 0).sink("rows")


def q10() -> rp.Pipeline:
    return reading("q10", Bid).map("filed", filed, into=Filed, batch=True).sink("rows")


def q14() -> rp.Pipeline:
    return (
        reading("q14", Bid)
        .derive("in-euro", euro=rp.col("price") * 908 / 1000)
        .filter("range", (rp.col("euro") > 1_000_000) & (rp.col("euro") < 50_000_000))
        .map("counted", counted, into=Counted, batch=True)
        .sink("rows")
    )


def q21() -> rp.Pipeline:
    return (
        reading("q21", Addressed)
        .map("channelled", channelled, into=Channelled, batch=True)
        .filter("known", ~rp.col("channel_id").is_null())
        .sink("rows")
    )


def q22() -> rp.Pipeline:
    return reading("q22", Addressed).map("divided", divided, into=Divided, batch=True).sink("rows")


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

"""Queries with state for every bid, without an end."""

from __future__ import annotations

import ripple as rp
from bench.nexmark.queries.query import Query, reading
from bench.nexmark.queries.records import WholeBid
from ripple.model.aggregate import Aggregate

DAY_NS = 86_400_000_000_000
MINUTE_NS = 60_000_000_000

price, bidder, auction, date_time = map(rp.col, ("price", "bidder", "auction", "date_time"))
RANKS = (price < 10_000, (price >= 10_000) & (price < 1_000_000), price >= 1_000_000)


@rp.record
class Reported:
    """The numbers of a bid."""

    auction: int
    bidder: int
    price: int
    date_time: rp.Timestamp


@rp.record
class ReportedByChannel:
    """The numbers of a bid, and its channel."""

    auction: int
    bidder: int
    price: int
    channel: str
    date_time: rp.Timestamp


def by_rank(name: str, value: rp.Expr | int) -> dict[str, rp.Expr]:
    """Return fields with the value for bids of one rank, null for others."""
    return {
        f"{name}{number}": rp.when(rank).then(value).otherwise(None)
        for number, rank in enumerate(RANKS, 1)
    }


def counts() -> dict[str, Aggregate]:
    """Return the numbers of bids, of all and of each rank."""
    return {
        "total_bids": rp.count(),
        **{f"rank{number}_bids": rp.count(f"bid{number}") for number in (1, 2, 3)},
    }


def distinct(name: str) -> dict[str, Aggregate]:
    """Return the numbers of different values, of all bids and of each rank."""
    return {
        f"total_{name}s": rp.count_distinct(name),
        **{f"rank{n}_{name}s": rp.count_distinct(f"{name}{n}") for n in (1, 2, 3)},
    }


def q15() -> rp.Pipeline:
    return (
        reading("q15", Reported)
        .derive("day", day=date_time // DAY_NS * DAY_NS)
        .derive("ranks", **by_rank("bid", 1))
        .derive("others", **by_rank("bidder", bidder), **by_rank("auction", auction))
        .partition("by-day", key="day")
        .fold("report", **counts(), **distinct("bidder"), **distinct("auction"))
        .sink("rows")
    )


def q16() -> rp.Pipeline:
    return (
        reading("q16", ReportedByChannel)
        .derive(
            "times", day=date_time // DAY_NS * DAY_NS, minute_ns=date_time // MINUTE_NS * MINUTE_NS
        )
        .derive("ranks", **by_rank("bid", 1))
        .derive("others", **by_rank("bidder", bidder), **by_rank("auction", auction))
        .partition("by-channel", key=("channel", "day"))
        .fold(
            "report",
            minute=rp.max("minute_ns"),
            **counts(),
            **distinct("bidder"),
            **distinct("auction"),
        )
        .sink("rows")
    )


def q17() -> rp.Pipeline:
    return (
        reading("q17", Reported)
        .derive("day", day=date_time // DAY_NS * DAY_NS)
        .derive("ranks", **by_rank("bid", 1))
        .partition("by-auction", key=("auction", "day"))
        .fold(
            "report",
            **counts(),
            min_price=rp.min("price"),
            max_price=rp.max("price"),
            avg_price=rp.mean("price"),
            sum_price=rp.sum("price"),
        )
        .sink("rows")
    )


def q18() -> rp.Pipeline:
    return (
        reading("q18", WholeBid)
        .partition("by-bidder", key=("bidder", "auction"))
        .fold("last", bid=rp.last_row(["price", "channel", "url", "date_time", "extra"]))
        .sink("rows")
    )


def q19() -> rp.Pipeline:
    fields = ["bidder", "price", "channel", "url", "date_time", "extra"]
    return (
        reading("q19", WholeBid)
        .partition("by-auction", key="auction")
        .fold("top", top=rp.top_rows(10, "price", fields))
        .sink("rows")
    )


DAY = f"date_time // {DAY_NS} * {DAY_NS} AS day"
COUNTS = """
    count(*) AS total_bids,
    count(*) FILTER (WHERE price < 10000) AS rank1_bids,
    count(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_bids,
    count(*) FILTER (WHERE price >= 1000000) AS rank3_bids
"""
DISTINCT = ", ".join(
    f"""
    count(DISTINCT {name}) AS total_{name}s,
    count(DISTINCT {name}) FILTER (WHERE price < 10000) AS rank1_{name}s,
    count(DISTINCT {name}) FILTER (WHERE price >= 10000 AND price < 1000000) AS rank2_{name}s,
    count(DISTINCT {name}) FILTER (WHERE price >= 1000000) AS rank3_{name}s
    """
    for name in ("bidder", "auction")
)
AS_TIME = "a day is the time of its begin, not a text"

QUERIES = (
    Query(
        "q15",
        "report of a day",
        q15,
        f"SELECT {DAY}, {COUNTS}, {DISTINCT} FROM bid GROUP BY day",
        AS_TIME,
    ),
    Query(
        "q16",
        "report of a channel and day",
        q16,
        f"""
        SELECT channel, {DAY}, max(date_time // {MINUTE_NS} * {MINUTE_NS}) AS minute,
               {COUNTS}, {DISTINCT}
        FROM bid GROUP BY channel, day
        """,
        "a day and a minute are the times of their begin, not texts",
    ),
    Query(
        "q17",
        "report of an auction and day",
        q17,
        f"""
        SELECT auction, {DAY}, {COUNTS}, min(price) AS min_price, max(price) AS max_price,
               sum(price) / count(*) AS avg_price, sum(price)::BIGINT AS sum_price
        FROM bid GROUP BY auction, day
        """,
        f"{AS_TIME}; the mean is a float, not rounded down",
    ),
    Query(
        "q18",
        "last bid of a bidder and auction",
        q18,
        """
        SELECT auction, bidder, price AS bid_price, channel AS bid_channel, url AS bid_url,
               date_time AS bid_date_time, extra AS bid_extra
        FROM bid
        QUALIFY row_number() OVER (PARTITION BY bidder, auction
                                   ORDER BY date_time DESC, place DESC) <= 1
        """,
        "of two bids at one time the later one in the input is the last; SQL leaves that open",
    ),
    Query(
        "q19",
        "ten dearest bids of an auction",
        q19,
        """
        SELECT auction,
               list({'bidder': bidder, 'price': price, 'channel': channel, 'url': url,
                     'date_time': date_time, 'extra': extra} ORDER BY rank) AS top
        FROM (SELECT *, row_number() OVER (PARTITION BY auction
                                           ORDER BY price DESC, date_time, place) AS rank
              FROM bid)
        WHERE rank <= 10 GROUP BY auction
        """,
        "one row an auction, with a list of its bids; of equal prices the earlier bid is better",
    ),
)

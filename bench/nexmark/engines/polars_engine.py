"""Polars: one lazy query over the whole file, on all processors."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

import polars as pl
from polars import col

from bench.nexmark.engines.script import main

DAY_NS, MINUTE_NS = 86_400_000_000_000, 60_000_000_000
TEN_NS, HOP_NS = 10_000_000_000, 2_000_000_000
CHANNELS = {"apple": "0", "google": "1", "facebook": "2", "baidu": "3"}

# Polars turns division by a constant into multiplication, with two roundings.
EURO = (col("price") * pl.lit(Decimal("0.908"))).cast(pl.Float64).alias("euro")
MOMENT = col("date_time").cast(pl.Datetime("ns"))
HOUR = MOMENT.dt.hour()
DAY = (col("date_time") // DAY_NS * DAY_NS).alias("day")
BID = ("auction", "bidder", "price", "date_time", "extra")
CHANNELLED = ("auction", "bidder", "price", "channel")
RANKS = (
    col("price") < 10_000,
    (col("price") >= 10_000) & (col("price") < 1_000_000),
    col("price") >= 1_000_000,
)
COUNTS = (
    pl.len().cast(pl.Int64).alias("total_bids"),
    *(rank.sum().cast(pl.Int64).alias(f"rank{n}_bids") for n, rank in enumerate(RANKS, 1)),
)
DISTINCT = tuple(
    column
    for name in ("bidder", "auction")
    for column in (
        col(name).n_unique().cast(pl.Int64).alias(f"total_{name}s"),
        *(
            col(name).filter(rank).n_unique().cast(pl.Int64).alias(f"rank{n}_{name}s")
            for n, rank in enumerate(RANKS, 1)
        ),
    )
)


def q5(bids: pl.LazyFrame) -> pl.LazyFrame:
    start = (col("date_time") // HOP_NS - pl.int_ranges(5)) * HOP_NS
    num = pl.len().cast(pl.Int64).alias("most_num")
    return (
        bids.select("auction", window_start_ns=start)
        .explode("window_start_ns")
        .group_by("auction", "window_start_ns")
        .agg(num)
        .sort("window_start_ns", "most_num", "auction", descending=[False, True, False])
        .unique("window_start_ns", keep="first", maintain_order=True)
        .rename({"auction": "most_auction"})
        .with_columns(window_end_ns=col("window_start_ns") + TEN_NS)
    )


def q7(bids: pl.LazyFrame) -> pl.LazyFrame:
    start = (col("date_time") // TEN_NS * TEN_NS).alias("window_start_ns")
    best = bids.with_row_index("place").sort(
        "price", "auction", "date_time", "place", descending=[True, False, False, False]
    )
    names = {name: f"top_bid_{name}" for name in ("bidder", "price", "date_time", "extra")}
    return (
        best.with_columns(start)
        .unique("window_start_ns", keep="first", maintain_order=True)
        .rename({"auction": "top_auction", **names})
    )


def q11(bids: pl.LazyFrame) -> pl.LazyFrame:
    begins = (col("date_time").diff().over("bidder") >= TEN_NS).fill_null(value=True)
    return (
        bids.select("bidder", "date_time")
        .sort("bidder", "date_time")
        .with_columns(begins.cum_sum().over("bidder").alias("session"))
        .group_by("bidder", "session")
        .agg(
            pl.len().cast(pl.Int64).alias("bid_count"),
            col("date_time").min().alias("window_start_ns"),
            (col("date_time").max() + TEN_NS).alias("window_end_ns"),
        )
    )


def q12(bids: pl.LazyFrame) -> pl.LazyFrame:
    start = (col("date_time") // TEN_NS * TEN_NS).alias("window_start_ns")
    return bids.group_by("bidder", start).agg(pl.len().cast(pl.Int64).alias("bid_count"))


def q14(bids: pl.LazyFrame) -> pl.LazyFrame:
    time_type = (
        pl.when((HOUR >= 8) & (HOUR <= 18))
        .then(pl.lit("dayTime"))
        .when((HOUR <= 6) | (HOUR >= 20))
        .then(pl.lit("nightTime"))
        .otherwise(pl.lit("otherTime"))
    )
    return bids.filter((EURO > 1_000_000) & (EURO < 50_000_000)).select(
        "auction",
        "bidder",
        EURO,
        time_type.alias("bid_time_type"),
        "date_time",
        "extra",
        col("extra").str.count_matches("c", literal=True).cast(pl.Int64).alias("c_counts"),
    )


def q16(bids: pl.LazyFrame) -> pl.LazyFrame:
    minute = (col("date_time").max() // MINUTE_NS * MINUTE_NS).alias("minute")
    return bids.group_by("channel", DAY).agg(minute, *COUNTS, *DISTINCT)


def q17(bids: pl.LazyFrame) -> pl.LazyFrame:
    price = col("price")
    sums = (price.min().alias("min_price"), price.max().alias("max_price"))
    means = ((price.sum() / pl.len()).alias("avg_price"), price.sum().alias("sum_price"))
    return bids.group_by("auction", DAY).agg(*COUNTS, *sums, *means)


def q18(bids: pl.LazyFrame) -> pl.LazyFrame:
    last = bids.unique(["bidder", "auction"], keep="last", maintain_order=True)
    names = ("price", "channel", "url", "date_time", "extra")
    return last.rename({name: f"bid_{name}" for name in names})


def q19(bids: pl.LazyFrame) -> pl.LazyFrame:
    fields = ("bidder", "price", "channel", "url", "date_time", "extra")
    best = bids.sort("price", descending=True, maintain_order=True)
    return best.group_by("auction", maintain_order=True).agg(top=pl.struct(fields).head(10))


def q21(bids: pl.LazyFrame) -> pl.LazyFrame:
    known = col("channel").str.to_lowercase().replace_strict(CHANNELS, default=None)
    found = col("url").str.extract("(?:&|^)channel_id=([^&]*)", 1)
    number = pl.coalesce(known, found).alias("channel_id")
    return bids.select(*CHANNELLED, number).filter(col("channel_id").is_not_null())


def q22(bids: pl.LazyFrame) -> pl.LazyFrame:
    parts = col("url").str.split("/")
    return bids.select(*CHANNELLED, *(parts.list.get(n + 2).alias(f"dir{n}") for n in (1, 2, 3)))


QUERIES: dict[str, Callable[[pl.LazyFrame], pl.LazyFrame]] = {
    "q0": lambda bids: bids.select(BID),
    "q1": lambda bids: bids.select("auction", "bidder", EURO, "date_time", "extra"),
    "q2": lambda bids: bids.filter(col("auction") % 123 == 0).select("auction", "price"),
    "q5": q5,
    "q7": q7,
    "q10": lambda bids: bids.select(
        *BID, MOMENT.dt.strftime("%Y-%m-%d").alias("dt"), MOMENT.dt.strftime("%H:%M").alias("hm")
    ),
    "q11": q11,
    "q12": q12,
    "q14": q14,
    "q15": lambda bids: bids.group_by(DAY).agg(*COUNTS, *DISTINCT),
    "q16": q16,
    "q17": q17,
    "q18": q18,
    "q19": q19,
    "q21": q21,
    "q22": q22,
}


def rows(query: str, folder: Path) -> pl.DataFrame:
    """Return the rows of a query over a folder's bids."""
    return QUERIES[query](pl.scan_parquet(folder / "bid.parquet")).collect(engine="streaming")


if __name__ == "__main__":
    main(rows, pl.DataFrame.write_parquet)

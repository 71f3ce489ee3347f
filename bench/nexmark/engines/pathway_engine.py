"""Pathway: the file as one commit, in its static mode; its results as updates in a file."""

import re
import sys
import time
from pathlib import Path

import pathway as pw
import pyarrow as pa
import pyarrow.json
import pyarrow.parquet as pq

DAY_NS, MINUTE_NS = 86_400_000_000_000, 60_000_000_000
TEN_NS, HOP_NS = 10_000_000_000, 2_000_000_000
CHANNELS = {"apple": "0", "google": "1", "facebook": "2", "baidu": "3"}
CHANNEL_ID = re.compile("(?:&|^)channel_id=([^&]*)")


class Bid(pw.Schema):
    auction: int
    bidder: int
    price: int
    channel: str
    url: str
    date_time: int
    extra: str


def in_euro(bids):
    return bids.select(
        bids.auction, bids.bidder, bids.date_time, bids.extra, euro=bids.price * 908 / 1000
    )


def q5(bids):
    hops = pw.temporal.sliding(hop=HOP_NS, duration=TEN_NS, origin=0)
    counts = bids.windowby(bids.date_time, window=hops, instance=bids.auction).reduce(
        auction=pw.this._pw_instance, start=pw.this._pw_window_start, num=pw.reducers.count()
    )
    # The largest pair: of as many bids the smallest number.
    pair = pw.make_tuple(pw.this.num, -pw.this.auction)
    best = counts.groupby(pw.this.start).reduce(pw.this.start, pair=pw.reducers.max(pair))
    return best.select(
        window_start_ns=pw.this.start,
        window_end_ns=pw.this.start + TEN_NS,
        most_auction=-pw.this.pair[1],
        most_num=pw.this.pair[0],
    )


def q7(bids):
    windows = bids.windowby(bids.date_time, window=pw.temporal.tumbling(duration=TEN_NS, origin=0))
    found = windows.reduce(
        start=pw.this._pw_window_start,
        row=pw.reducers.argmax(pw.make_tuple(pw.this.price, -pw.this.auction, -pw.this.date_time)),
    )
    row = bids.ix(found.row)
    return found.select(
        window_start_ns=found.start,
        top_auction=row.auction,
        top_bid_bidder=row.bidder,
        top_bid_price=row.price,
        top_bid_date_time=row.date_time,
        top_bid_extra=row.extra,
    )


def q10(bids):
    moment = bids.date_time.dt.utc_from_timestamp(unit="ns")
    return bids.select(
        *(bids.auction, bids.bidder, bids.price, bids.date_time, bids.extra),
        dt=moment.dt.strftime("%Y-%m-%d"),
        hm=moment.dt.strftime("%H:%M"),
    )


def q11(bids):
    windows = bids.windowby(
        bids.date_time,
        window=pw.temporal.session(predicate=lambda one, two: two - one < TEN_NS),
        instance=bids.bidder,
    )
    return windows.reduce(
        bidder=pw.this._pw_instance,
        bid_count=pw.reducers.count(),
        window_start_ns=pw.reducers.min(pw.this.date_time),
        window_end_ns=pw.reducers.max(pw.this.date_time) + TEN_NS,
    )


def q12(bids):
    windows = bids.windowby(
        bids.date_time,
        window=pw.temporal.tumbling(duration=TEN_NS, origin=0),
        instance=bids.bidder,
    )
    return windows.reduce(
        bidder=pw.this._pw_instance,
        bid_count=pw.reducers.count(),
        window_start_ns=pw.this._pw_window_start,
    )


def q14(bids):
    rows = in_euro(bids)
    rows = rows.filter((rows.euro > 1_000_000) & (rows.euro < 50_000_000))
    hour = rows.date_time.dt.utc_from_timestamp(unit="ns").dt.hour()
    night = pw.if_else((hour <= 6) | (hour >= 20), "nightTime", "otherTime")
    return rows.select(
        *(rows.auction, rows.bidder, rows.euro, rows.date_time, rows.extra),
        bid_time_type=pw.if_else((hour >= 8) & (hour <= 18), "dayTime", night),
        c_counts=rows.extra.str.count("c"),
    )


def ranked(bids):
    price = bids.price
    rank = pw.if_else(price < 10_000, 1, pw.if_else(price < 1_000_000, 2, 3))
    return bids.with_columns(day=bids.date_time // DAY_NS * DAY_NS, rank=rank)


def counts():
    ranks = {
        f"rank{n}_bids": pw.reducers.sum(pw.if_else(pw.this.rank == n, 1, 0)) for n in (1, 2, 3)
    }
    return {"total_bids": pw.reducers.count(), **ranks}


def distinct(name):
    """Count distinct values; all other ranks share the value -1, subtracted again."""
    found = {f"total_{name}s": pw.reducers.count_distinct(pw.this[name])}
    for n in (1, 2, 3):
        value = pw.if_else(pw.this.rank == n, pw.this[name], -1)
        others = pw.reducers.max(pw.if_else(pw.this.rank == n, 0, 1))
        found[f"rank{n}_{name}s"] = pw.reducers.count_distinct(value) - others
    return found


def q15(bids):
    days = ranked(bids).groupby(pw.this.day)
    return days.reduce(pw.this.day, **counts(), **distinct("bidder"), **distinct("auction"))


def q16(bids):
    return (
        ranked(bids)
        .groupby(pw.this.channel, pw.this.day)
        .reduce(
            pw.this.channel,
            pw.this.day,
            minute=pw.reducers.max(pw.this.date_time // MINUTE_NS * MINUTE_NS),
            **counts(),
            **distinct("bidder"),
            **distinct("auction"),
        )
    )


def q17(bids):
    price = pw.this.price
    return (
        ranked(bids)
        .groupby(pw.this.auction, pw.this.day)
        .reduce(
            pw.this.auction,
            pw.this.day,
            **counts(),
            min_price=pw.reducers.min(price),
            max_price=pw.reducers.max(price),
            sum_price=pw.reducers.sum(price),
            avg_price=pw.reducers.sum(price) / pw.reducers.count(),
        )
    )


@pw.udf
def number_of(channel: str, url: str) -> str | None:
    known = CHANNELS.get(channel.lower())
    if known is not None:
        return known
    found = CHANNEL_ID.search(url)
    return found[1] if found else None


def q21(bids):
    rows = bids.select(
        *(bids.auction, bids.bidder, bids.price, bids.channel),
        channel_id=number_of(bids.channel, bids.url),
    )
    return rows.filter(rows.channel_id.is_not_none())


@pw.udf
def folder_of(url: str, number: int) -> str:
    return url.split("/")[number]


def q22(bids):
    return bids.select(
        *(bids.auction, bids.bidder, bids.price, bids.channel),
        dir1=folder_of(bids.url, 3),
        dir2=folder_of(bids.url, 4),
        dir3=folder_of(bids.url, 5),
    )


QUERIES = {
    "q0": lambda bids: bids.select(
        bids.auction, bids.bidder, bids.price, bids.date_time, bids.extra
    ),
    "q1": in_euro,
    "q2": lambda bids: bids.filter(bids.auction % 123 == 0)[["auction", "price"]],
    "q5": q5,
    "q7": q7,
    "q10": q10,
    "q11": q11,
    "q12": q12,
    "q14": q14,
    "q15": q15,
    "q16": q16,
    "q17": q17,
    "q21": q21,
    "q22": q22,
}


def main(query, folder, out):
    updates = Path(out).with_suffix(".jsonl")
    bids = pw.io.csv.read(f"{folder}/bid.csv", schema=Bid, mode="static")
    pw.io.jsonlines.write(QUERIES[query](bids), updates)
    started = time.process_time()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    print(time.process_time() - started)
    texts = pa.json.ParseOptions(explicit_schema=pa.schema([("dt", pa.string())]))
    rows = pa.json.read_json(updates, parse_options=texts)
    assert rows["diff"].unique().to_pylist() == [1]
    pq.write_table(rows, out)


if __name__ == "__main__":
    main(*sys.argv[1:])

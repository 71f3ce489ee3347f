"""Bytewax: a dataflow over rows of 1,000 at a time, its results in a list."""

import re
import sys
import time
from datetime import UTC, datetime, timedelta

import bytewax.operators as op
import bytewax.operators.windowing as win
import pyarrow as pa
import pyarrow.parquet as pq
from bytewax.dataflow import Dataflow
from bytewax.operators.windowing import (
    EventClock,
    SessionWindower,
    SlidingWindower,
    TumblingWindower,
)
from bytewax.testing import TestingSink, TestingSource, run_main

BATCH = 1_000
DAY_NS, MINUTE_NS = 86_400_000_000_000, 60_000_000_000
TEN_NS, HOP_NS = 10_000_000_000, 2_000_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TEN, HOP = timedelta(seconds=10), timedelta(seconds=2)
CHANNELS = {"apple": "0", "google": "1", "facebook": "2", "baidu": "3"}
CHANNEL_ID = re.compile("(?:&|^)channel_id=([^&]*)")
BID = ("auction", "bidder", "price", "date_time", "extra")
CHANNELLED = ("auction", "bidder", "price", "channel")


def bids(folder):
    for batch in pq.ParquetFile(f"{folder}/bid.parquet").iter_batches(BATCH):
        yield from batch.to_pylist()


def part(bid, names):
    return {name: bid[name] for name in names}


def in_euro(bid):
    euro = bid["price"] * 908 / 1000
    return {**part(bid, ("auction", "bidder", "date_time", "extra")), "euro": euro}


def moment(bid):
    return datetime.fromtimestamp(bid["date_time"] // 1_000_000_000, UTC)


def filed(bid):
    at = moment(bid)
    return {**part(bid, BID), "dt": at.strftime("%Y-%m-%d"), "hm": at.strftime("%H:%M")}


def counted(bid):
    row = in_euro(bid)
    if not 1_000_000 < row["euro"] < 50_000_000:
        return None
    hour = moment(bid).hour
    night = "nightTime" if hour <= 6 or hour >= 20 else "otherTime"
    row["bid_time_type"] = "dayTime" if 8 <= hour <= 18 else night
    row["c_counts"] = bid["extra"].count("c")
    return row


def channelled(bid):
    number = CHANNELS.get(bid["channel"].lower())
    if number is None:
        found = CHANNEL_ID.search(bid["url"])
        if found is None:
            return None
        number = found[1]
    return {**part(bid, CHANNELLED), "channel_id": number}


def divided(bid):
    parts = bid["url"].split("/")
    return {**part(bid, CHANNELLED), "dir1": parts[3], "dir2": parts[4], "dir3": parts[5]}


def by_row(function):
    return lambda stream: op.filter_map("rows", stream, function)


def some(bid):
    return part(bid, ("auction", "price")) if bid["auction"] % 123 == 0 else None


def rank(price):
    return 1 if price < 10_000 else 2 if price < 1_000_000 else 3


class Report:
    """Counts of bids, and of different bidders and auctions, of all and by rank."""

    def __init__(self, has_distinct):
        self.bids = [0, 0, 0, 0]
        self.seen = {
            name: [set(), set(), set(), set()] for name in ("bidder", "auction") if has_distinct
        }
        self.minute, self.least, self.most, self.sum = 0, None, None, 0

    def add(self, bid):
        price = bid["price"]
        for at in (0, rank(price)):
            self.bids[at] += 1
            for name, sets in self.seen.items():
                sets[at].add(bid[name])

    def row(self):
        total, *ranks = self.bids
        row = {"total_bids": total}
        row |= {f"rank{n}_bids": count for n, count in enumerate(ranks, 1)}
        for name, sets in self.seen.items():
            row[f"total_{name}s"] = len(sets[0])
            row |= {f"rank{n}_{name}s": len(sets[n]) for n in (1, 2, 3)}
        return row


def nothing(_state, _bid):
    return {}


def report(key, has_distinct, more=nothing):
    """Fold bids by key and day; each bid gives the new row."""

    def step(state, bid):
        state = state or Report(has_distinct)
        state.add(bid)
        names = {name: bid[name] for name in key}
        day = bid["date_time"] // DAY_NS * DAY_NS
        return state, {**names, "day": day, **state.row(), **more(state, bid)}

    def key_of(bid):
        return "|".join([*(str(bid[name]) for name in key), str(bid["date_time"] // DAY_NS)])

    def build(stream):
        rows = op.stateful_map("report", op.key_on("key", stream, key_of), step)
        return op.filter_map("last", rows, LAST.take)

    return build


class Last:
    """The last row of each key: the result of the updates."""

    def __init__(self):
        self.rows = {}

    def take(self, item):
        self.rows[item[0]] = item[1]


LAST = Last()


def minute(state, bid):
    state.minute = max(state.minute, bid["date_time"] // MINUTE_NS * MINUTE_NS)
    return {"minute": state.minute}


def prices(state, bid):
    price = bid["price"]
    state.least = price if state.least is None else min(state.least, price)
    state.most = price if state.most is None else max(state.most, price)
    state.sum += price
    row = {"min_price": state.least, "max_price": state.most, "sum_price": state.sum}
    return {**row, "avg_price": state.sum / state.bids[0]}


def last(stream):
    def step(state, bid):
        if state is None or bid["date_time"] >= state["date_time"]:
            state = bid
        names = ("price", "channel", "url", "date_time", "extra")
        row = {**part(state, ("auction", "bidder")), **{f"bid_{n}": state[n] for n in names}}
        return state, row

    keyed = op.key_on("key", stream, lambda bid: f"{bid['bidder']}|{bid['auction']}")
    return op.filter_map("last", op.stateful_map("latest", keyed, step), LAST.take)


def top(stream):
    names = ("bidder", "price", "channel", "url", "date_time", "extra")

    def step(state, bid):
        # Sorting is stable: of equal prices the earlier bid stays in front.
        state = sorted([*(state or []), part(bid, names)], key=lambda one: -one["price"])[:10]
        return state, {"auction": bid["auction"], "top": state}

    keyed = op.key_on("key", stream, lambda bid: str(bid["auction"]))
    return op.filter_map("last", op.stateful_map("best", keyed, step), LAST.take)


def clock():
    """Return event time; without its wait, time that passes here makes bids late."""
    return EventClock(
        lambda bid: EPOCH + timedelta(milliseconds=bid["date_time"] // 1_000_000),
        wait_for_system_duration=TEN,
    )


def most(stream):
    """Count bids by auction in sliding windows; each count gives its window's new row."""
    keyed = op.key_on("auction", stream, lambda bid: str(bid["auction"]))
    hops = SlidingWindower(length=TEN, offset=HOP, align_to=EPOCH)
    out = win.fold_window("w", keyed, clock(), hops, int, lambda n, _bid: n + 1, int.__add__)

    def by_window(item):
        auction, (number, count) = item
        return str(number), (count, -int(auction))

    def step(best, found):
        best = max(found, best or found)
        return best, best

    def row(item):
        number, (count, auction) = item
        start = int(number) * HOP_NS
        found = {"window_start_ns": start, "window_end_ns": start + TEN_NS}
        LAST.take((number, {**found, "most_auction": -auction, "most_num": count}))

    best = op.stateful_map("best", op.map("by-window", out.down, by_window), step)
    return op.filter_map("last", best, row)


def dearest(stream):
    """Fold all bids of ten seconds."""
    keyed = op.key_on("all", stream, lambda _bid: "all")
    windower = TumblingWindower(length=TEN, align_to=EPOCH)

    def better(one, other):
        if one is None or other is None:
            return one or other
        return max(one, other, key=lambda b: (b["price"], -b["auction"], -b["date_time"]))

    out = win.fold_window("w", keyed, clock(), windower, lambda: None, better, better)

    def row(item):
        _, (number, bid) = item
        names = ("bidder", "price", "date_time", "extra")
        found = {"window_start_ns": number * TEN_NS, "top_auction": bid["auction"]}
        return {**found, **{f"top_bid_{name}": bid[name] for name in names}}

    return op.map("rows", out.down, row)


def counts(windower, has_end):
    """Count bids by bidder in windows of time."""

    def build(stream):
        keyed = op.key_on("bidder", stream, lambda bid: str(bid["bidder"]))

        def fold(held, bid):
            at = bid["date_time"]
            return (held[0] + 1, min(held[1], at), max(held[2], at))

        def merge(one, two):
            return (one[0] + two[0], min(one[1], two[1]), max(one[2], two[2]))

        out = win.fold_window("w", keyed, clock(), windower, lambda: (0, 1 << 62, 0), fold, merge)

        def row(item):
            bidder, (_, (count, first, end)) = item
            found = {"bidder": int(bidder), "bid_count": count}
            if has_end:
                return {**found, "window_start_ns": first, "window_end_ns": end + TEN_NS}
            return {**found, "window_start_ns": first // TEN_NS * TEN_NS}

        return op.map("rows", out.down, row)

    return build


QUERIES = {
    "q0": by_row(lambda bid: part(bid, BID)),
    "q1": by_row(in_euro),
    "q2": by_row(some),
    "q5": most,
    "q7": dearest,
    "q10": by_row(filed),
    "q11": counts(SessionWindower(gap=TEN), has_end=True),
    "q12": counts(TumblingWindower(length=TEN, align_to=EPOCH), has_end=False),
    "q14": by_row(counted),
    "q15": report((), has_distinct=True),
    "q16": report(("channel",), True, minute),
    "q17": report(("auction",), False, prices),
    "q18": last,
    "q19": top,
    "q21": by_row(channelled),
    "q22": by_row(divided),
}


def main(query, folder, out):
    found = []
    flow = Dataflow("nexmark")
    stream = op.input("bids", flow, TestingSource(bids(folder), batch_size=BATCH))
    op.output("out", QUERIES[query](stream), TestingSink(found))
    started = time.process_time()
    run_main(flow)
    print(time.process_time() - started)
    rows = found or list(LAST.rows.values())
    pq.write_table(pa.Table.from_pylist(rows), out)


if __name__ == "__main__":
    main(*sys.argv[1:])

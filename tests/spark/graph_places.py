"""Logs and files of pipelines with branches or several sources."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

import ripple as rp
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.model.pipeline.file import load_plan
from ripple.spark.backfill.receipt import Receipt
from ripple.spark.log_table import open_topic
from ripple.storage.log import PartitionReader
from tests.spark.backfilled import backfilled
from tests.spark.backfills import TRADES, UNTIL
from tests.spark.logs import topic_of

SOURCE = """
from dataclasses import dataclass

import ripple as rp

@rp.record(version=1)
class Trade:
    symbol: str
    price: float
    size: int
    t: rp.Timestamp

@rp.record(version=1)
class Quote:
    t: rp.Timestamp
    bid: float | None
    symbol: str
    venue: int | None

ends = dict(n=rp.count(), first=rp.first("price"), last=rp.last("price"), best=rp.max("price"))
trades = rp.Pipeline("p").source("trades", Trade, time="t", out_of_order="2s")
large = trades.filter("large", rp.col("size") > 3)
minutes = trades.partition("by", key="symbol").window("m", rp.Tumbling("60s"), lateness="5s")
branches = (
    large.sink("events")
    .also(minutes.fold("bars", **ends).sink("bars-out"))
    .also(large.partition("l", key="symbol").fold("rows", **ends).sink("rows-out"))
)

over = trades.partition("o", key="symbol").window("ow", rp.Tumbling("10s"), lateness="5s").fold(
    "ten", **ends).finals("final")
rolled = over.scan("roll", "symbol", settled=True, mean=rp.rolling_mean("last", 3)).scan(
    "recent", "symbol", settled=True, window=rp.Last(3), total=rp.sum("n"),
    firsts=rp.count_distinct("first"))
finals = (
    trades.sink("events")
    .also(rolled.partition("f", key="symbol")
        .fold("tens", n=rp.sum("total"), mean=rp.last("mean"), firsts=rp.sum("firsts"))
        .sink("rows-out"))
    .also(over.partition("g", key="symbol").window("h", rp.Tumbling("60s"))
        .fold("minute", n=rp.sum("n"), last=rp.last("last")).sink("bars-out"))
)

distinct = trades.distinct("once", key="symbol", within="5s").sink("events")

start = rp.Pipeline("market")
sold = start.source("trades", Trade, time="t", out_of_order="2s")
quotes = start.source("quotes", Quote, time="t", out_of_order="2s")
seen = quotes.partition("q-by", key="symbol").window("w", rp.Tumbling("30s"))
market = (
    quotes.sink("events")
    .also(sold.partition("s-by", key="symbol").fold("ends", **ends).sink("rows-out"))
    .also(seen.fold("seen", n=rp.count(), last=rp.last("bid")).sink("bars-out"))
)

newest = sold.partition("n-by", key="symbol").fold("newest", **ends)
asked = quotes.partition("a-by", key="symbol").fold("asked", n=rp.count(), bid=rp.last("bid"))
small, every = (
    some.partition(f"{name}-by", key="symbol").window(f"{name}-w", rp.Tumbling("30s"))
    .fold(name, n=rp.count(), best=rp.max("price"))
    for name, some in (("small", sold.filter("less", rp.col("size") < 3)), ("every", sold))
)
joined = (
    quotes.sink("events")
    .also(newest.join("beside", asked, on="symbol", how="full").sink("rows-out"))
    .also(every.join("w", small, on=["symbol", "window_start_ns"], how="left").sink("bars-out"))
)

def shown(rows, at):
    by = rows.partition("b", key="symbol")
    return (
        rows.sink("events")
        .also(by.fold("ends", n=rp.count(), at=rp.last(at)).sink("rows-out"))
        .also(by.window("bw", rp.Tumbling("20s")).fold("bars", n=rp.count()).sink("bars-out"))
    )

asof = shown(sold.join_asof("at", quotes, on="symbol", tolerance="5s", strategy="nearest",
    lateness="5s", emit="final"), "bid")
now = sold.join_asof("at", quotes, on="symbol", tolerance="5s", lateness="5s", emit="eager")
now_by = now.partition("b", key="symbol")
eager = (
    quotes.sink("events")
    .also(now.sink("rows-out"))
    .also(now_by.fold("met", n=rp.count(), bid=rp.max("bid"), last=rp.max("t")).sink("bars-out"))
)
pairs = quotes.join_interval("met", sold, on="symbol", within=("-1s", "2s"), how="full",
    lateness="5s", emit="eager")
pairs_by = pairs.partition("pb", key="symbol")
at_once = (
    quotes.sink("events")
    .also(pairs.sink("rows-out"))
    .also(pairs_by.fold("with", n=rp.count(), size=rp.sum("size")).sink("bars-out"))
)
near = shown(sold.join_interval("near", quotes, on="symbol", within=("-1s", "2s"), how="full",
    lateness="5s", emit="final"), "bid")
later = shown(quotes.join_interval("later", sold, on="symbol", within=("1s", "2s"), how="right",
    lateness="5s", emit="final"), "price")
@dataclass
class Level:
    price: float | None = None
    moves: int = 0
    rests: rp.Timestamp | None = None

@dataclass
class Move:
    price: float
    moves: int
    t: rp.Timestamp

def moved(level, trade):
    before, level.price = level.price, trade.price
    level.moves += 1
    level.rests = trade.t + 3_000_000_000
    return None if before is None else Move(trade.price - before, level.moves, trade.t)

def rested(level, at):
    level.moves += 1
    return Move(level.price, level.moves, at - 1)  # the time of the row

once = shown(sold.distinct("once", key="symbol", within="2s").scan("moves", "symbol",
    state=Level, step=moved, into=Move, settled=True, ttl="20s", timers={"rests": rested}), "price")
booked = shown(
    sold.derive("sides",
        side=rp.when(rp.col("size") % 2 == 0).then(rp.lit("B")).otherwise(rp.lit("A")))
    .scan("booked", "symbol", step=rp.OrderBook(begins="empty"), settled=True), "bid")
now_moved = sold.scan("now", "symbol", state=Level, step=moved, into=Move, lateness="5s",
    timers={"rests": rested})
scanned = (
    quotes.sink("events")
    .also(now_moved.sink("rows-out"))
    .also(now_moved.partition("nb", key="symbol").fold("most", n=rp.count(), price=rp.max("price"))
        .sink("bars-out"))
)
last_moved = sold.scan("lasts", "symbol", state=Level, step=moved, into=Move, show="last",
    lateness="5s", ttl="20s", timers={"rests": rested})
lasts = (
    quotes.sink("events")
    .also(last_moved.sink("rows-out"))
    .also(sold.derive("in-cents", cents=(rp.col("price") * 100).cast(int))
        .scan("held", "symbol", step=rp.Position("size", "cents", method="fifo"), show="last",
            lateness="5s")
        .sink("bars-out"))
)
large_of = sold.partition("z-by", key="symbol").fold("most", size=rp.max("size"))
large_then = sold.partition("y-by", key=["symbol", "size"]).fold("then", of=rp.max("size"))
many = (
    quotes.sink("events")
    .also(large_of.join("pairs", large_then, left_on="size", right_on="of").sink("rows-out"))
    .also(large_then.join("others", large_of, left_on="of", right_on="size", how="full")
        .sink("bars-out"))
)

brief = trades.partition("i-by", key=["symbol", "size"])
ending = (
    trades.sink("events")
    .also(brief.fold("active", ttl="4s", **ends).sink("rows-out"))
    .also(minutes.fold("counted", n=rp.count()).sink("bars-out"))
)

@rp.record(version=1)
class Listing:
    symbol: str
    owner: int
    gone: bool
    t: rp.Timestamp

listings = start.table("listings", Listing, key="symbol", deleted="gone", time="t")
listed = (
    sold.sink("events")
    .also(newest.join("with", listings, on="symbol", how="left").sink("rows-out"))
    .also(listings.partition("l-by", key="symbol").fold("owned", owner=rp.sum("owner"))
        .sink("bars-out"))
)

listings_alone = listings.sink("rows-out")

both = rp.Pipeline("both")
left = both.source("trades", Trade, time="t", out_of_order="2s")
right = both.source("others", Trade, time="t", out_of_order="2s")
union = rp.union("u", left, right)
once_of_both = shown(union.distinct("of-both", key="symbol", within="500ms", lateness="3s"),
    "price")
venues = shown(sold.join_asof("venues", quotes, left_on="size", right_on="venue",
    lateness="5s", emit="final"), "bid")
united = (
    union.sink("events")
    .also(union.partition("u-by", key="symbol").fold("ends", **ends).sink("rows-out"))
    .also(union.partition("w-by", key="symbol").window("w", rp.Session("3s"), lateness="5s")
        .fold("sessions", **ends).sink("bars-out"))
)
"""
OUTPUTS = ("events", "bars-out", "rows-out")


class Place:
    """A folder with logs of all records, and files and logs that meet at UNTIL, by source."""

    def __init__(self, folder: Path, name: str, partitions: tuple[int, ...]) -> None:
        self.folder, self.file = folder, f"{folder}/p.py:{name}"
        (folder / "p.py").write_text(SOURCE)
        self.plan = load_plan(self.file)
        self.history, self.whole, self.live = {}, {}, {}
        for rank, (source, count) in enumerate(zip(self.plan.sources, partitions, strict=True)):
            rows = [self.row(one, rank, source.name) for one in TRADES[rank::2]]
            if source.table is not None:  # its topic is its history
                changes = [one for one in rows if one["t"] >= UNTIL or one["price"] > 120]
                self.whole[source.name] = self.live[source.name] = topic_of(
                    folder / "whole",
                    self.plan,
                    [self.listing(one) for one in changes],
                    partitions=count,
                    key=("symbol",),
                    source=source.name,
                )
                continue
            ordered = sorted((one for one in rows if one["t"] < UNTIL), key=lambda one: one["t"])
            later = [one for one in rows[200:] if one["t"] >= UNTIL]
            overlap = [one for one in rows[250:] if one["t"] < UNTIL]
            file = f"{folder}/{source.name}.csv"
            table = pa.Table.from_pylist(ordered, pa.schema(arrow_fields(source.fields)))
            pa.csv.write_csv(table, file, pa.csv.WriteOptions(include_header=False))
            self.history[source.name] = file
            for kind, places, made in (
                ("whole", self.whole, ordered + later),
                ("live", self.live, overlap + later),
            ):
                places[source.name] = topic_of(
                    folder / kind,
                    self.plan,
                    made,
                    partitions=count,
                    key=("symbol",),
                    source=source.name,
                )

    @staticmethod
    def row(one: dict[str, Any], rank: int, source: str) -> dict[str, Any]:
        """Return a trade as a record of a source; of one time, sources differ."""
        if source == "quotes":
            fields = {name: one[name] for name in ("t", "symbol")}
            bid, venue = one["price"], one["size"]
            return {
                **fields,
                "bid": bid if bid % 9 else None,
                "venue": venue if venue > 2 else None,
            }
        return {**one, "price": one["price"] + 1000 * rank}

    @staticmethod
    def listing(one: dict[str, Any]) -> dict[str, Any]:
        """Return a trade as a change of a table, a fifth of them deletions."""
        owner, gone = int(one["price"]), one["price"] % 5 == 0
        return {"symbol": one["symbol"], "owner": owner, "gone": gone, "t": one["t"]}

    def backfilled(self, **options: Any) -> Receipt:
        return backfilled(
            self.file, self.history, self.live, self.folder / "store", UNTIL, **options
        )

    def run(self, places: dict[str, str], store: str) -> Any:
        """Run durably to the end of the logs; return the engine."""
        seen: list[Any] = []
        rp.run(
            self.plan,
            source=places,
            sink={name: f"log:{self.folder}/out-{store}/{name}" for name in OUTPUTS},
            checkpoint_dir=self.folder / store,
            on_batch=lambda engine, _: seen.append(engine),
        )
        return seen[-1] if seen else None

    def shown(self, store: str) -> list[dict[str, Any]]:
        """Return the events that a run has written."""
        topic, _ = open_topic(f"log:{self.folder}/out-{store}/events")
        found: list[dict[str, Any]] = []
        for partition in range(topic.partitions):
            with PartitionReader(topic, partition) as reader:
                found += (row for entry in reader.read() for row in entry.records.to_pylist())
        return found

    def following(self, rows: list[dict[str, Any]], mark_ns: int) -> list[dict[str, Any]]:
        """Return the rows that follow from a watermark on, in any order; some are of history."""
        found = [one for one in rows if time_of(one) >= mark_ns]
        assert min(map(time_of, found)) < UNTIL, "some rows of history wait when it ends"
        return sorted(found, key=repr)


def time_of(row: dict[str, Any]) -> int:
    """Return the time of a row, of a joined one perhaps of its right side alone."""
    time_ns: int = row["t"] if row["t"] is not None else row["t_right"]
    return time_ns

"""Pipelines of three sources, and events for their inputs."""

from __future__ import annotations

from typing import Any

import ripple as rp
import ripple.model.aggregate as ra
from ripple.model.pipeline.builder import Pipeline
from tests.engine.machine.ticks import AGGREGATES, Tick

INPUTS = {
    1: ("ticks", "more", "quotes"),
    2: ("ticks/0", "ticks/1", "more/0", "quotes/0", "quotes/1"),
}


@rp.record
class Quote:
    """A quote with its fields in another order, and another name for the time."""

    size: int
    symbol: str
    at_ns: rp.Timestamp
    bid: float | None


class Starts:
    """The sources of a pipeline, of which a test may use some."""

    def __init__(self) -> None:
        pipeline = Pipeline("test")
        self.ticks = pipeline.source("ticks", Tick, out_of_order=10, reject_future=100_000)
        self.more = pipeline.source("more", Tick, out_of_order=40)
        self.quotes = pipeline.source("quotes", Quote, out_of_order=0)


def as_tick(quote: Any) -> dict[str, Any]:
    if quote.size == 7:
        raise ValueError("no such quote was expected")
    return {
        "symbol": quote.symbol,
        "price": quote.bid,
        "size": quote.size,
        "venue": None,
        "timestamp_ns": quote.at_ns,
    }


def doubled(tick: Any) -> list[dict[str, Any]]:
    return [{**vars(tick), "size": tick.size + part} for part in range(tick.size % 3)]


def plain(starts: Starts) -> Pipeline:
    """Unite two sources of one record, and show and fold the rows."""
    both = rp.union("both", starts.ticks, starts.more)
    fold = both.partition("p0", key="symbol").fold(
        "f0", **{name: AGGREGATES[name] for name in ("n", "vwap", "opened", "closed", "candle")}
    )
    return both.sink("both-out").also(fold.sink("f0-out"))


def windowed(starts: Starts) -> Pipeline:
    """Unite three sources, one of them mapped, below two windows of other lateness."""
    mapped = starts.quotes.filter("q1", rp.col("size") != 3).map("m1", as_tick, into=Tick)
    every = rp.union("every", starts.more, mapped, starts.ticks.filter("k1", rp.col("size") < 3))
    keyed = every.partition("p1", key="symbol")
    fold = keyed.window("w1", rp.Tumbling(50), lateness=20).fold(
        "f1", n=ra.count(), first=ra.first("size"), last=ra.last("size")
    )
    late = keyed.window("w1b", rp.Sliding(60, 25), lateness=200).fold("f1b", t=ra.sum("size"))
    total = fold.partition("by-window", key="window_start_ns").fold("over", all=ra.sum("n"))
    return fold.sink("f1-out").also(late.sink("f1b-out")).also(total.sink("over-out"))


def branches(starts: Starts) -> Pipeline:
    """Unite two branches with common records of one source, and another source."""
    cheap = starts.ticks.filter("c2", rp.col("size") < 3)
    many = starts.ticks.flat_map("d2", doubled, into=Tick)
    united = rp.union("twice", cheap, many, starts.more)
    more = united.flat_map("e2", doubled, into=Tick)
    fold = more.partition("p2", key="symbol").window("w2", rp.Session(30), lateness=0)
    last = united.partition("p2b", key="size").fold(
        "f2b", at=ra.last("symbol"), o=ra.first("price")
    )
    return (
        united.sink("twice-out")
        .also(fold.fold("f2", n=ra.count(), last=ra.last("size")).sink("f2-out"))
        .also(last.sink("f2b-out"))
    )


def separate(starts: Starts) -> Pipeline:
    """Fold one source alone, by its watermark, next to another one."""
    keyed = starts.quotes.partition("p3", key="symbol")
    fold = keyed.window("w3", rp.Tumbling(40), lateness=10).fold("f3", n=ra.count())
    parts = starts.more.derive("s3", part=10 // (rp.col("size") - 3)).sink("parts")
    return fold.sink("f3-out").also(parts)


def nested(starts: Starts) -> Pipeline:
    """Unite unions."""
    mapped = starts.quotes.map("m4", as_tick, into=Tick)
    inner = rp.union("inner", starts.ticks, mapped)
    outer = rp.union("outer", inner.filter("i4", rp.col("size") > 0), starts.more)
    return outer.partition("p4", key="symbol").fold("f4", last=ra.last("price")).sink("f4-out")


WAYS = [plain, windowed, branches, separate, nested]


def pipeline_of(ways: list[Any]) -> Pipeline:
    starts = Starts()
    first, *rest = (way(starts) for way in ways)
    for branch in rest:
        first = first.also(branch)
    return first


def quoted(tick: dict[str, Any]) -> dict[str, Any]:
    return {
        "size": tick["size"],
        "symbol": tick["symbol"],
        "at_ns": tick["timestamp_ns"],
        "bid": tick["price"],
    }


def mixed(happened: list[Any], owners: list[str]) -> list[tuple[str, Any]]:
    """Return the events, each with its input."""
    pairs = zip(owners, happened, strict=False)
    return [(name, quoted(one) if name.startswith("quotes") else one) for name, one in pairs]

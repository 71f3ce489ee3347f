"""Pipelines that are tried on simulated clusters, by name: one for each kind of edge."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import count
from random import Random
from typing import Any, Literal, TypeAlias

import pyarrow as pa

import ripple as rp
from ripple.model.keys.partitioner import partition_numbers
from ripple.testing.cluster.trial import ClusterTrial
from tests.engine.machine.stage_plans import trades
from tests.on_demand import on_demand
from tests.worker.new_branch import NewBranchTrial
from tests.worker.short_segments import ShortSegmentsTrial

COUNT = 48
CALLS = count()


@rp.record(version=1)
class Trade:
    symbol: str
    venue: str
    price: float
    size: int = rp.field(gt=0)
    t: rp.Timestamp


def events(name: str) -> list[dict[str, Any]]:
    """Return trades, of which some are no trades."""
    listed = trades(Random(name), COUNT)
    for refused in listed[::13]:
        refused["size"] = 0
    return listed


Emit: TypeAlias = Literal["eager", "final"]


def first(window: Any = None, idle: str | None = None) -> Any:
    """Return the first stage, of all pipelines."""
    pipeline = rp.Pipeline("p").source("trades", Trade, time="t", out_of_order=3, idle=idle)
    pipeline = pipeline.partition("first", key=("symbol", "venue"))
    if window is not None:
        pipeline = pipeline.window("w", window, lateness=4)
    return pipeline.fold("rows", n=rp.count(), total=rp.sum("price"), size=rp.sum("size"))


def shown(name: str, pipeline: Any, given: list[Any] | None = None) -> ClusterTrial:
    """Return the trial of a pipeline whose rows are shown, too."""
    pipeline = pipeline.sink("last").sink("shown", of="rows")
    return ClusterTrial(pipeline, events(name) if given is None else given)


def streamed() -> Any:
    """Show events, and fold none."""
    start = rp.Pipeline("p").source("trades", Trade, time="t", out_of_order=3)
    large = start.filter("of-more", rp.col("size") > 1)
    return start.sink("all", key="symbol").also(large.sink("large"))


def branches() -> Any:
    """Show events twice, and fold them three times, by keys that have a field in common."""
    start = rp.Pipeline("p").source("trades", Trade, time="t", out_of_order=3)
    named = start.derive("valued", value=rp.col("price") * rp.col("size"))
    large = named.filter("of-more", rp.col("size") > 1)
    by_symbol = named.partition("first", key=("symbol", "venue"))
    bars = by_symbol.window("w", rp.Tumbling(10), lateness=4).fold("bars", total=rp.sum("value"))
    kept = large.partition("second", key="symbol").fold("rows", n=rp.count(), last=rp.last("size"))
    over = kept.partition("third", key=("symbol", "n")).fold("by_n", at=rp.max("last"))
    return (
        named.sink("all")
        .also(large.sink("large", key="venue"))
        .also(bars.sink("shown"))
        .also(over.sink("last"))
    )


def branched_stages() -> Any:
    """Show events, fold them twice, and fold both folds' rows by other keys, over every edge."""
    start = rp.Pipeline("p").source("trades", Trade, time="t", out_of_order=3, key="symbol")
    by_both = start.partition("first", key=("symbol", "venue"))
    kept = by_both.fold("rows", n=rp.count(), total=rp.sum("price"))
    bars = start.filter("of-more", rp.col("size") > 1).partition("second", key="symbol")
    bars = bars.window("w", rp.Tumbling(10), lateness=4).fold("bars", total=rp.sum("price"))
    by_venue = kept.partition("third", key="venue", partitions=2)
    by_venue = by_venue.fold("by_venue", middle=rp.median("total"), n=rp.sum("n"))
    over = by_venue.partition("fourth", key=()).fold("all", n=rp.sum("n"), of=rp.count())
    times = bars.partition("fifth", key="window_start_ns", partitions=2)
    middles = times.fold("middles", middle=rp.median("total"))
    return (
        start.sink("events")
        .also(kept.sink("kept"))
        .also(by_venue.sink("venues"))
        .also(over.sink("last"))
        .also(times.fold("sums", total=rp.sum("total"), n=rp.count()).sink("shown"))
        .also(middles.sink("middle"))
    )


def grown(*, more: bool) -> Any:
    """Fold trades in windows and for ever; with ``more`` show events and fold other windows."""
    start = rp.Pipeline("p").source("trades", Trade, time="t", out_of_order=3, key="symbol")
    by_symbol = start.partition("first", key="symbol")
    bars = by_symbol.window("w", rp.Tumbling(10), lateness=4).fold("bars", total=rp.sum("price"))
    kept = by_symbol.fold("rows", n=rp.count(), last=rp.last("size"))
    whole = bars.sink("shown").also(kept.sink("last"))
    if not more:
        return whole
    large = start.filter("of-more", rp.col("size") > 1)
    by_both = large.partition("second", key=("symbol", "venue"))
    sizes = by_both.window("v", rp.Tumbling(20), lateness=4).fold("sizes", n=rp.sum("size"))
    return whole.also(large.sink("large")).also(sizes.sink("sizes-out"))


def small_alone(trade: Trade) -> Trade:
    """Refuse large trades."""
    if trade.size > 2:
        raise ValueError("too large")
    return trade


def grown_stages(*, more: bool, refuses: bool = False) -> Any:
    """Fold folds of windows and for ever by other keys; with ``more`` add branches of stage 0.

    refuses: whether one of these refuses records that count in the others.
    """
    start = rp.Pipeline("p").source("trades", Trade, time="t", out_of_order=3, key="symbol")
    by_both = start.partition("first", key=("symbol", "venue"))
    kept = by_both.fold("rows", n=rp.count(), total=rp.sum("price"))
    by_venue = kept.partition("second", key="venue", partitions=2)
    by_venue = by_venue.fold("by_venue", middle=rp.median("total"), n=rp.sum("n"))
    bars = by_both.window("w", rp.Tumbling(10), lateness=4).fold("bars", total=rp.sum("price"))
    times = bars.partition("third", key="window_start_ns", partitions=2)
    middles = times.fold("middles", middle=rp.median("total")).sink("middle")
    large = start.filter("of-more", rp.col("size") > 1)
    by_symbol = large.partition("fourth", key="symbol").window("v", rp.Tumbling(20), lateness=4)
    sizes = by_symbol.fold("sizes", n=rp.sum("size"))
    venues = by_venue.sink("venues")
    if not more:
        return venues.also(middles)
    if refuses:
        return venues.also(middles).also(start.map("small", small_alone, into=Trade).sink("few"))
    return large.sink("large").also(venues).also(middles).also(sizes.sink("sizes-out"))


@dataclass
class Level:
    price: float | None = None
    moves: int = 0
    rests: rp.Timestamp | None = None


@dataclass
class Move:
    by: float
    moves: int


def stepped(level: Level, trade: Trade) -> Move | None:
    """Tell how far a price is from the one before; nothing of the first one."""
    before, level.price = level.price, trade.price
    level.moves += 1
    level.rests = trade.t + 7
    return None if before is None else Move(trade.price - before, level.moves)


def rested(level: Level, at: int) -> Move:
    """Tell that there was no trade for a while."""
    level.moves += at % 2
    return Move(0.0, level.moves)


def ordered() -> Any:
    """Show and fold final rows and distinct ones, in windows again, and scan the latter."""
    start = rp.Pipeline("p").source("trades", Trade, time="t", out_of_order=3, key="symbol")
    keyed = start.partition("first", key=("symbol", "venue"))
    bars = keyed.window("w", rp.Tumbling(10), lateness=4)
    final = bars.fold("bars", total=rp.sum("price"), n=rp.count()).finals("final")
    large = final.filter("of-more", rp.col("total") > 0)
    rolling: Any = {"mean": rp.mean("total"), "most": rp.top_k("n", 2)}
    trend = large.scan("trend", "symbol", settled=True, ttl=60, window=rp.Last(3), **rolling)
    hours = large.partition("second", key="symbol").window("h", rp.Tumbling(40))
    highest = hours.fold("hours", n=rp.sum("n"), last=rp.last("total"))
    once = start.distinct("once", ("venue", "symbol"), within=6, lateness=4)
    said: Any = {"state": Level, "step": stepped, "into": Move, "timers": {"rests": rested}}
    steps = once.scan("steps", "symbol", settled=True, ttl=25, **said)
    by_symbol: Any = {"key": "symbol", "state": Level, "step": stepped, "into": Move, "lateness": 6}
    now = start.scan("now", timers={"rests": rested}, **by_symbol)
    newest = start.scan("newest", show="last", ttl=25, timers={"rests": rested}, **by_symbol)
    runs = once.partition("third", key="symbol").window("v", rp.Session(15))
    return (
        final.sink("final-out")
        .also(trend.sink("trend-out"))
        .also(highest.sink("hours-out"))
        .also(once.sink("once-out"))
        .also(runs.fold("runs", n=rp.count(), first=rp.first("price")).sink("last"))
        .also(steps.sink("steps-out"))
        .also(now.sink("now-out"))
        .also(newest.sink("newest-out"))
    )


def ending() -> Any:
    """Fold by keys that end by event time, and show final rows and distinct ones beside them."""
    start = rp.Pipeline("p").source("trades", Trade, time="t", out_of_order=3, key="symbol")
    by_symbol = start.partition("first", key="symbol")
    ends = by_symbol.fold("newest", n=rp.count(), last=rp.last("price"), ttl=30)
    over = ends.partition("second", key=("symbol", "n")).fold("by_n", at=rp.max("last"))
    bars = by_symbol.window("w", rp.Tumbling(10), lateness=4).fold("bars", n=rp.count())
    once = start.distinct("once", "symbol", within=6, lateness=4)
    return (
        ends.sink("shown")
        .also(over.sink("last"))
        .also(bars.finals("final").sink("final-out"))
        .also(once.sink("once-out"))
    )


@rp.record(version=1)
class Quote:
    symbol: str
    bid: float
    ask: float
    t: rp.Timestamp


@rp.record(version=1)
class Price:
    symbol: str
    price: float
    t: rp.Timestamp


def middle(quote: Any) -> dict[str, Any]:
    """Return the price of a quote; one that has none is no quote."""
    if quote.ask < quote.bid:
        raise ValueError("crossed")
    return {"symbol": quote.symbol, "price": (quote.bid + quote.ask) / 2, "t": quote.t}


def both_sources(idle: str | None = None, *, further: bool = False) -> Any:
    """Fold two sources together, in windows and for ever, one of them alone, and show events.

    idle: of quotes. further: and fold the rows of these folds by other keys, over partial and row
    edges.
    """
    market = rp.Pipeline("p")
    bought = market.source("trades", Trade, time="t", key="symbol", out_of_order=3)
    quotes = market.source("quotes", Quote, time="t", key="symbol", out_of_order=5, idle=idle)
    union = rp.union(
        "prices",
        bought.map("traded", lambda trade: trade, into=Price),
        quotes.map("middle", middle, into=Price),
    )
    prices = union.partition("by-symbol", key="symbol")
    bars = prices.window("w", rp.Tumbling(10), lateness=4).fold("bars", price=rp.ohlc("price"))
    last = prices.fold("newest", price=rp.last("price"), n=rp.count())
    venues = bought.partition("by-venue", key=("venue", "symbol")).fold("rows", n=rp.sum("size"))
    whole = (
        bars.sink("shown")
        .also(last.sink("last"))
        .also(venues.sink("sizes"))
        .also(quotes.sink("quoted"))
    )
    if not further:
        return whole
    times = bars.partition("by-time", key="window_start_ns", partitions=2)
    middles = times.fold("middles", middle=rp.median("price_close"))
    by_venue = venues.partition("venues", key="venue", partitions=2)
    by_venue = by_venue.fold("by_venue", n=rp.sum("n"), kinds=rp.count_distinct("n"))
    total = by_venue.partition("all", key=()).fold("total", n=rp.sum("n"), of=rp.count())
    return (
        whole.also(times.fold("highest", high=rp.max("price_high")).sink("high"))
        .also(middles.sink("middles-out"))
        .also(by_venue.sink("venues-out"))
        .also(total.sink("total-out"))
    )


def tables_joined() -> Any:
    """Join tables of two sources by their key, by one of its fields, and windows of one source."""
    market = rp.Pipeline("p")
    bought = market.source("trades", Trade, time="t", key="symbol", out_of_order=3)
    quotes = market.source("quotes", Quote, time="t", key="symbol", out_of_order=5)
    last = quotes.partition("of-quote", key="symbol").fold("last", bid=rp.last("bid"))
    newest = bought.partition("of-trade", key="symbol").fold("newest", price=rp.last("price"))
    venues = bought.partition("by-venue", key=("venue", "symbol")).fold("venues", n=rp.sum("size"))
    beside = newest.join("beside", last, on="symbol", how="full")
    named = venues.join("named", last, on="symbol", how="left").filter("even", rp.col("n") % 2 == 0)
    large, every = (
        some.partition(f"p-{name}", key="symbol")
        .window(f"w-{name}", rp.Tumbling(10), lateness=4)
        .fold(name, n=rp.count(), high=rp.max("price"))
        for name, some in (("large", bought.filter("l", rp.col("size") > 1)), ("every", bought))
    )
    windows = every.join("windows", large, on=["symbol", "window_start_ns"], how="left")
    sums = named.partition("by-symbol", key="symbol").fold("sums", bids=rp.sum("bid"))
    spans = quotes.derive("spanned", span=rp.col("t") // 50)
    spans = spans.partition("by-span", key=("symbol", "span")).fold("spans", asks=rp.count())
    met = venues.join("met", spans, on="symbol", how="left")
    return (
        beside.sink("shown")
        .also(met.sink("met-out"))
        .also(named.sink("names"))
        .also(windows.sink("pairs"))
        .also(sums.sink("last-out"))
    )


def as_of() -> Any:
    """Join trades with the quote of their time and those near it, and fold and show them."""
    market = rp.Pipeline("p")
    bought = market.source("trades", Trade, time="t", key="symbol", out_of_order=3)
    quotes = market.source("quotes", Quote, time="t", key="symbol", out_of_order=5)
    rows = bought.join_asof("at-quote", quotes, on="symbol", tolerance=20, lateness=4, emit="final")
    keyed = rows.partition("by-symbol", key="symbol")
    last = keyed.fold("newest", bid=rp.last("bid"), n=rp.count("bid"))
    bars = keyed.window("w", rp.Tumbling(10)).fold("bars", bid=rp.max("bid"), n=rp.count())
    near = bought.join_interval(
        "near", quotes, on="symbol", within=(-8, 3), how="full", lateness=6, emit="final"
    )
    placed = near.derive("placed", place=rp.col("venue").fill_null(""))
    pairs = placed.partition("by-venue", key=("place", "symbol"))
    mean = pairs.window("n", rp.Tumbling(10)).fold("means", bid=rp.mean("bid"), n=rp.count())
    return (
        rows.sink("shown")
        .also(last.sink("last"))
        .also(bars.sink("sizes"))
        .also(near.sink("pairs"))
        .also(mean.sink("means-out"))
    )


def at_once() -> Any:
    """Join trades with quotes eagerly; show the rows, and fold them after some steps."""
    market = rp.Pipeline("p")
    bought = market.source("trades", Trade, time="t", key="symbol", out_of_order=3)
    quotes = market.source("quotes", Quote, time="t", key="symbol", out_of_order=5)
    rows = bought.join_asof("at-quote", quotes, on="symbol", tolerance=20, lateness=4, emit="eager")
    last = rows.partition("by-symbol", key="symbol")
    last = last.fold("newest", bid=rp.max("bid"), n=rp.count("bid"), of=rp.count())
    how = {"strategy": "nearest", "how": "inner", "allow_exact_matches": False}
    near = bought.join_asof(
        "near", quotes, on="symbol", tolerance=8, lateness=6, **how, emit="eager"
    )
    some = near.filter("kept", rp.col("bid") > rp.col("price"))  # until a better match
    some = some.derive("parts", part=10 // (rp.col("size") - 3))  # fails for some
    venues = some.partition("by-venue", key=("venue", "symbol"))
    venues = venues.fold("venues", n=rp.count(), bids=rp.sum("bid"), part=rp.min("part"))
    met = bought.join_interval(
        "met", quotes, on="symbol", within=(-6, 2), how="full", lateness=4, emit="eager"
    )
    of_met = met.partition("met-by", key="symbol").fold("met-n", n=rp.count("bid"), of=rp.count())
    return (
        rows.sink("shown")
        .also(met.sink("met-shown"))
        .also(of_met.sink("met-out"))
        .also(last.sink("last"))
        .also(some.sink("pairs"))
        .also(venues.sink("sizes"))
    )


def from_both(name: str) -> list[tuple[str, dict[str, Any]]]:
    """Return trades and quotes in a random order, in which quotes lag more and more."""
    random = Random(name)
    traded, quoted = events(name), trades(random, COUNT)
    for at, row in enumerate(quoted):
        bid = row.pop("price")
        del row["venue"], row["size"]
        row |= {"bid": bid, "ask": bid + (-1.0 if at % 13 == 5 else 1.0)}
    found: list[tuple[str, dict[str, Any]]] = []
    while traded or quoted:
        name, left = ("trades", traded) if random.random() < 0.75 else ("quotes", quoted)
        if left:
            found.append((name, left.pop(0)))
    return found


def undivided() -> Any:
    """Fold two sources, and one of them, by keys that have nothing in common."""
    market = rp.Pipeline("p")
    bought = market.source("trades", Trade, time="t", key="symbol", out_of_order=3)
    quotes = market.source("quotes", Quote, time="t", key="t", out_of_order=5)
    prices = rp.union(
        "prices",
        bought.map("traded", lambda trade: trade, into=Price),
        quotes.map("middle", middle, into=Price),
    )
    last = prices.partition("by-symbol", key="symbol").fold("newest", price=rp.last("price"))
    venues = bought.partition("by-venue", key="venue").fold("rows", n=rp.count())
    total = venues.partition("all", key=()).fold("total", n=rp.sum("n"))
    return last.sink("last").also(venues.sink("sizes")).also(total.sink("shown"))


def as_trade(quote: Any) -> dict[str, Any]:
    """Return the middle of a quote as a trade of one."""
    return {**middle(quote), "venue": "", "size": 1}


def repartitioned(trades_by: str, quotes_by: str, *, emit: Emit | None) -> Any:
    """Fold two sources by symbol; one or both have another key.

    A record may be too late for one fold, and not for another. emit: of their join; without one
    events are shown.
    """
    market = rp.Pipeline("p")
    bought = market.source("trades", Trade, time="t", key=trades_by, out_of_order=3)
    quotes = market.source("quotes", Quote, time="t", key=quotes_by, out_of_order=5)
    both = rp.union("both", bought, quotes.map("as-trade", as_trade, into=Trade))
    prices = both.partition("by-symbol", key="symbol", partitions=2)
    hot = prices.window("w", rp.Tumbling(10), lateness=0).fold("hot", n=rp.count())
    cold = prices.window("x", rp.Tumbling(20), lateness=60).fold("cold", last=rp.last("price"))
    venues = both.partition("by-venue", key=("venue", "symbol")).fold("rows", n=rp.sum("size"))
    whole = hot.sink("shown").also(cold.sink("last")).also(venues.sink("sizes"))
    if emit:
        near = bought.join_asof("near", quotes, on="symbol", tolerance=20, lateness=4, emit=emit)
        return whole.also(near.sink("pairs"))
    return whole.also(both.sink("all")).also(quotes.sink("quoted"))


def moved(
    name: str,
    *keys: str,
    emit: Emit | None = None,
    has_broker: bool = False,
    plan: Any = None,
) -> ClusterTrial:
    """Return the trial of ``repartitioned``, of few inputs: of each source 4, or 2.

    plan: another one.
    """
    counts, found = {"trades": 4, "quotes": 2}, []
    keyed = dict(zip(counts, keys, strict=True))
    for source, event in from_both(name):
        records = pa.RecordBatch.from_pylist([{keyed[source]: event[keyed[source]]}])
        number = int(partition_numbers(records, (keyed[source],), counts[source])[0])
        found.append((f"{source}/{number}", event))
    inputs = [f"{source}/{at}" for source, count in counts.items() for at in range(count)]
    plan = plan or repartitioned(*keys, emit=emit)
    return ClusterTrial(plan, found, inputs=inputs, has_broker=has_broker)


def by_two_fields() -> Any:
    """Fold trades by symbol, twice, and by venue, each too late for other records."""
    market = rp.Pipeline("p")
    bought = market.source("trades", Trade, time="t", key="symbol", out_of_order=3)
    by_symbol = bought.partition("by-symbol", key="symbol", partitions=3)
    hot = by_symbol.window("w", rp.Tumbling(10), lateness=0).fold("hot", n=rp.count())
    kept = by_symbol.fold("rows", n=rp.count(), total=rp.sum("price"), last=rp.last("size"))
    over = kept.partition("over", key=("symbol", "n")).fold("by_n", at=rp.max("last"))
    by_venue = bought.filter("of-more", rp.col("size") > 1).partition("by-venue", key="venue")
    cold = by_venue.window("x", rp.Tumbling(20), lateness=60).fold("cold", last=rp.last("price"))
    return hot.sink("shown").also(over.sink("last")).also(cold.sink("venues"))


def both_by_two_fields() -> Any:
    """Fold two sources by symbol, and one of them by venue, and show its events."""
    market = rp.Pipeline("p")
    bought = market.source("trades", Trade, time="t", key="symbol", out_of_order=3)
    quotes = market.source("quotes", Quote, time="t", key="symbol", out_of_order=5)
    both = rp.union("both", bought, quotes.map("as-trade", as_trade, into=Trade))
    by_symbol = both.partition("by-symbol", key="symbol", partitions=2)
    hot = by_symbol.window("w", rp.Tumbling(10), lateness=0).fold("rows", n=rp.count())
    venues = bought.partition("by-venue", key="venue").fold("venues", last=rp.last("price"))
    return hot.sink("shown").also(venues.sink("last")).also(bought.sink("all"))


def one_source(name: str, *, has_broker: bool = False) -> ClusterTrial:
    """Return the trial of ``by_two_fields``, of 4 inputs."""
    found = []
    for event in events(name):
        records = pa.RecordBatch.from_pylist([{"symbol": event["symbol"]}])
        found.append((f"trades/{partition_numbers(records, ('symbol',), 4)[0]}", event))
    inputs = [f"trades/{at}" for at in range(4)]
    return ClusterTrial(by_two_fields(), found, inputs=inputs, has_broker=has_broker)


def in_one() -> ClusterTrial:
    """Return the trial of sources that one partition alone can read: one has 2, the other 3."""
    counts, found, random = {"trades": 2, "quotes": 3}, [], Random("one")
    for name, event in from_both("one"):
        found.append((f"{name}/{random.randrange(counts[name])}", event))
    inputs = [f"{name}/{at}" for name, count in counts.items() for at in range(count)]
    return ClusterTrial(undivided(), found, inputs=inputs)


@rp.record(version=1)
class Grade:
    """An answer."""

    grade: int


async def grade(trade: Any) -> dict[str, int]:
    """Return another grade in each call; some take long, and some fail."""
    number = next(CALLS)
    await asyncio.sleep(number * 7 % 11 / 50)
    if trade.size == 3 and number % 2:
        raise ConnectionError
    return {"grade": number}


def answered(idle: str | None = None, *, further: bool = False) -> Any:
    """Show trades with answers, and fold them in windows, beside a fold without answers.

    further: and fold the rows of these folds by other keys, over partial and row edges.
    """
    start = rp.Pipeline("p")
    start = start.source("trades", Trade, time="t", key="symbol", out_of_order=3, idle=idle)
    graded = start.ask("grade", grade, into=Grade, retries=0, concurrency=3)
    by_both = graded.partition("first", key=("symbol", "venue"))
    bars = by_both.window("w", rp.Tumbling(10), lateness=4)
    bars = bars.fold("bars", grades=rp.sum("grade"), n=rp.count(), last=rp.last("grade"))
    rows = start.partition("beside", key="symbol").fold("rows", n=rp.count())
    whole = graded.sink("graded").also(bars.sink("shown")).also(rows.sink("last"))
    if not further:
        return whole
    times = bars.partition("by-time", key="window_start_ns", partitions=2)
    middles = times.fold("middles", middle=rp.median("grades"), n=rp.count())
    kept = graded.partition("sized", key=("symbol", "size")).fold("kept", n=rp.count())
    sizes = kept.partition("by-size", key="size", partitions=2)
    sizes = sizes.fold("sizes", n=rp.sum("n"), symbols=rp.count())
    return (
        whole.also(times.fold("sums", n=rp.sum("n")).sink("sums-out"))
        .also(middles.sink("middles-out"))
        .also(sizes.sink("sizes-out"))
    )


__getattr__ = on_demand(
    globals(),
    # Two sources, of 12 and 8 partitions, in one stage and in several; divided in no way; tables of
    # both that are joined, and streams of both. Rows that follow by the watermark, and keys that
    # end. Branches of one stage and of several, and a chain of one.
    # Then partial edges, of rows that stay and of windows that end; a row edge; both.
    sources=lambda: ClusterTrial(both_sources(), from_both("sources")),
    one_partition=in_one,
    source_stages=lambda: ClusterTrial(both_sources(further=True), from_both("stages")),
    joined=lambda: ClusterTrial(tables_joined(), from_both("joined")),
    matched=lambda: ClusterTrial(as_of(), from_both("matched")),
    matched_at_once=lambda: ClusterTrial(at_once(), from_both("at once")),
    moved_at_once=lambda: moved("moved at once", "venue", "t", emit="eager"),
    # One of two sources is repartitioned, or both; neither is in the trials above.
    quotes_moved=lambda: moved("quotes moved", "symbol", "t", emit="final"),
    both_moved=lambda: moved("both moved", "venue", "t", emit="final"),
    moved_at_broker=lambda: moved("moved at a broker", "venue", "t", emit="final", has_broker=True),
    events_moved=lambda: moved("events moved", "symbol", "t"),
    # Branches by keys without a common field: of one source, in a log and in a topic, and of two.
    apart=lambda: one_source("apart"),
    apart_at_broker=lambda: one_source("apart at a broker", has_broker=True),
    both_apart=lambda: moved("both apart", "symbol", "symbol", plan=both_by_two_fields()),
    by_watermark=lambda: ClusterTrial(ordered(), events("ordered")),
    endings=lambda: ClusterTrial(ending(), events("endings")),
    streams=lambda: ClusterTrial(streamed(), events("streams")),
    branched=lambda: ClusterTrial(branches(), events("branched")),
    new_branch=lambda: NewBranchTrial(
        grown(more=True), events("new branch"), before=grown(more=False)
    ),
    new_branch_of_stages=lambda: NewBranchTrial(
        grown_stages(more=True), events("new branch"), before=grown_stages(more=False)
    ),
    tree=lambda: ClusterTrial(branched_stages(), events("tree")),
    windows=lambda: shown("windows", first(rp.Tumbling(10))),
    totals=lambda: shown(
        "totals",
        first()
        .partition("second", key="venue", partitions=2)
        .fold("by_venue", n=rp.count(), total=rp.sum("total")),
    ),
    window_totals=lambda: shown(
        "window totals",
        first(rp.Sliding(12, 5))
        .partition("second", key=("venue", "window_start_ns"), partitions=2)
        .fold("by_venue", n=rp.sum("n"), total=rp.sum("total")),
    ),
    rows=lambda: shown(
        "rows",
        first()
        .partition("second", key="n", partitions=2)
        .fold("by_n", middle=rp.median("total"), kinds=rp.count_distinct("size")),
    ),
    # Inputs that may be idle: of windows alone, of one of two sources, in one stage and in several,
    # and of windows that a later stage waits for.
    idle=lambda: shown("idle", first(rp.Tumbling(10), "200ms")),
    idle_sources=lambda: ClusterTrial(both_sources("200ms"), from_both("idle sources")),
    idle_stages=lambda: ClusterTrial(both_sources("200ms", further=True), from_both("idle stages")),
    idle_totals=lambda: ClusterTrial(
        first(rp.Sliding(12, 5), "900ms")
        .partition("second", key=("venue", "window_start_ns"), partitions=2)
        .fold("by_venue", n=rp.sum("n"), total=rp.sum("total"))
        .sink("last"),
        events("idle totals"),
    ),
    # Answers of services, alone and beside markers of idle inputs, with segments of their logs.
    asked=lambda: ShortSegmentsTrial(answered(), events("asked")),
    asked_stages=lambda: ClusterTrial(answered(further=True), events("asked stages")),
    asked_idle=lambda: ShortSegmentsTrial(answered("200ms"), events("asked idle")),
    chain=lambda: shown(
        "chain",
        first()
        .partition("second", key="venue", partitions=2)
        .fold("by_venue", middle=rp.median("total"), kinds=rp.count_distinct("size"))
        .partition("third", key="kinds", partitions=2)
        .fold("by_kinds", n=rp.count(), low=rp.min("middle")),
    ),
)

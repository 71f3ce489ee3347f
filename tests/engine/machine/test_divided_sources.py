"""Repartitioned sources, and one read directly, give the results of one engine over all inputs."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pytest

import ripple as rp
from ripple.engine.machine import Engine
from ripple.engine.machine.receiver import receiver
from ripple.engine.machine.source_router import source_router
from ripple.engine.machine.targets import Targets
from ripple.engine.machine.waiting_rows import OFFSET, WATERMARK
from ripple.model.pipeline.builder import Pipeline
from ripple.model.pipeline.input_names import source_of
from ripple.model.pipeline.new_division import NewDivision
from ripple.model.pipeline.plan import Plan
from ripple.model.pipeline.repartitioned import need_division
from ripple.model.schema.columns import records_of
from tests.engine.machine.staged import shares_of
from tests.examples import EXAMPLES

PARTITIONS = 3
COUNTS = {"trades": 3, "quotes": 2, "more": 2}


@rp.record
class Trade:
    symbol: str
    venue: str | None
    size: int
    t: rp.Timestamp


@rp.record
class Quote:
    venue: str
    symbol: str | None
    bid: int
    t: rp.Timestamp


class Starts:
    """The sources of a pipeline. Trades are divided by symbol; the others by anything."""

    def __init__(self) -> None:
        market = Pipeline("market")
        self.trades = market.source("trades", Trade, time="t", out_of_order=5)
        self.quotes = market.source("quotes", Quote, time="t", out_of_order=9, reject_future=60)
        self.more = market.source("more", Trade, time="t", out_of_order=3)


def renamed(quote: Any) -> dict[str, Any]:
    """Return a quote as a trade of another symbol."""
    if quote.bid == 7:
        raise ValueError("no such quote was expected")
    return {"symbol": quote.venue, "venue": quote.symbol, "size": quote.bid, "t": quote.t}


def doubled(trade: Any) -> list[dict[str, Any]]:
    """Return rows of two symbols, or none."""
    rows = [{**vars(trade), "symbol": name} for name in (trade.symbol, "a")]
    return rows[: trade.size % 3]


def asof(starts: Starts) -> Pipeline:
    near = starts.trades.join_asof("near", starts.quotes, on="symbol", lateness=7, emit="final")
    return near.sink("near-out")


def interval(starts: Starts) -> Pipeline:
    pairs = starts.quotes.filter("some", rp.col("bid") < 6).join_interval(
        "pairs", starts.more, on="symbol", within=(-20, 10), how="full", emit="final"
    )
    return pairs.sink("pairs-out")


def windows(starts: Starts) -> Pipeline:
    """Let a record be too late for one branch, and not for another."""
    mapped = starts.quotes.map("mapped", renamed, into=Trade)
    both = rp.union("both", starts.trades, mapped, starts.more).partition("p", key="symbol")
    hot = both.window("w", rp.Tumbling(20), lateness=0).fold("hot", n=rp.count())
    cold = both.window("x", rp.Sliding(30, 10), lateness=60).fold("cold", last=rp.last("size"))
    return hot.sink("hot-out").also(cold.sink("cold-out")).also(starts.quotes.sink("quoted"))


def flat(starts: Starts) -> Pipeline:
    """Let one record have rows of several keys, and show what it becomes."""
    many = starts.more.flat_map("many", doubled, into=Trade)
    fold = many.partition("q", key="symbol").fold("sizes", s=rp.sum("size"), l=rp.last("t"))
    late = many.partition("q2", key=("symbol", "size")).window("v", rp.Session(9), lateness=4)
    return (
        many.sink("many-out")
        .also(fold.sink("sizes-out"))
        .also(late.fold("late", n=rp.count()).sink("late-out"))
    )


def once(starts: Starts) -> Pipeline:
    both = rp.union("either", starts.more, starts.trades)
    return both.distinct("once", key="symbol", within=15, lateness=12).sink("once-out")


def apart(starts: Starts) -> Pipeline:
    """Fold by two fields without a common one; a record may be too late for one fold only."""
    both = rp.union("apart", starts.trades, starts.more.filter("few", rp.col("size") < 5))
    named = both.partition("r", key="symbol").window("y", rp.Tumbling(20), lateness=0)
    known = both.derive("known", place=rp.col("venue").fill_null("nowhere"))
    placed = known.partition("s", key="place").window("z", rp.Session(30), lateness=50)
    return (
        named.fold("named", n=rp.count(), last=rp.last("t"))
        .sink("named-out")
        .also(placed.fold("placed", n=rp.count(), first=rp.first("symbol")).sink("placed-out"))
        .also(both.sink("both-out"))
    )


def apart_of_one(starts: Starts) -> Pipeline:
    """Fold rows of several keys by either field, and the rows of that fold again."""
    many = starts.more.flat_map("several", doubled, into=Trade)
    known = many.derive("at", place=rp.col("venue").fill_null("nowhere"))
    sizes = known.partition("of-place", key="place").fold("venues", s=rp.sum("size"), n=rp.count())
    over = sizes.partition("of-both", key=("place", "n")).fold("over", s=rp.max("s"))
    symbols = many.partition("of-size", key=("symbol", "size")).fold("symbols", n=rp.count())
    return over.sink("over-out").also(symbols.sink("symbols-out"))


# The first ones have each of the ways alone, with others, and with either of windows and flat.
SEEDS = (1, 7, 8) if EXAMPLES == 1 else range(6 * EXAMPLES)
WAYS: list[Callable[[Starts], Pipeline]] = [asof, interval, windows, flat, once]


def plan_of(ways: list[Callable[[Starts], Pipeline]]) -> Plan:
    starts = Starts()
    first, *rest = (way(starts) for way in ways)
    for one in rest:
        first = first.also(one)
    return first.plan()


def records(random: Random, source: str, count: int) -> list[dict[str, Any]]:
    """Return records of a source, some late by any measure, and some that are refused."""
    found, now = [], 0
    for _ in range(count):
        now += random.choice([0, 0, 1, 4, 11])
        t = now + random.choice([0, 0, 0, -3, -8, -30, -100, 40])
        t = random.choice([t] * 30 + [now + 1000, 2**62])
        symbol, venue = random.choice("abcdef"), random.choice(["x", "y", "a"])
        if source == "quotes":
            named = random.choice([symbol, symbol, symbol, None])
            row = {"venue": venue, "symbol": named, "bid": random.randrange(9), "t": t}
        else:
            where = random.choice([venue, venue, None])
            row = {"symbol": symbol, "venue": where, "size": random.randrange(6), "t": t}
        found.append(row)
    return found


class Divided:
    """Senders of each repartitioned source, and their target partitions."""

    def __init__(
        self, plan: Plan, lanes: dict[str, list[Any]], direct: str, random: Random
    ) -> None:
        self.plan, self.lanes, self.random = plan, lanes, random
        by = {one.name: NewDivision(("symbol",)) for one in plan.sources if one.name != direct}
        if any(fold.name in ("placed", "venues") for fold in plan.folds):
            by = need_division(plan, "a cluster", {"trades": ("symbol",)}, is_one=False)
            assert list(by) == [one.name for one in plan.sources if one.name != direct]
        targets = {name: Targets(fields, PARTITIONS) for name, fields in by.items()}
        repartitioned = list(by)
        self.senders, self.epochs = {}, {}
        for source in repartitioned:
            names = [name for name in lanes if name.startswith(f"{source}/")]
            shares = [names] if random.random() < 0.5 else [[name] for name in names]
            for share in shares:
                router = source_router(targets[source])
                self.senders[tuple(share)] = router(plan, 0, share, staged=True)
        self.receivers: list[Engine] = []
        for number in range(PARTITIONS):
            made = receiver(targets, number)
            own = [
                name
                for name in lanes
                if name.partition("/")[0] in repartitioned or int(name.partition("/")[2]) == number
            ]
            self.receivers.append(made(plan, 7, own, staged=True))

    def read(self, engine: Engine, name: str) -> bool:
        """Apply some records of an input; return whether any were left."""
        at = engine.cut[name]
        some = self.lanes[name][at : at + self.random.choice([1, 2, 5, 40])]
        if some:
            rows = records_of(some, source_of(self.plan, name).fields)
            engine.apply(name, rows, at + len(some))
        return bool(some)

    def give(self, share: tuple[str, ...]) -> None:
        """Let a sender commit, and its receivers read that in pieces."""
        sender = self.senders[share]
        sender.stabilize()
        sender.check_invariants()
        given = sender.outgoing_to(range(len(share) * PARTITIONS))
        if self.random.random() < 0.3:
            self.senders[share] = type(sender).restore(self.plan, sender.snapshot())
        for target, changes in given.items():
            self.take(target % PARTITIONS, share[target // PARTITIONS], changes)

    def take(self, number: int, name: str, changes: Any) -> None:
        """Let a receiver read a whole cut of a lane."""
        here, fields = self.receivers[number], source_of(self.plan, name).fields
        offsets, marks = (changes.rows.column(one).to_numpy() for one in (OFFSET, WATERMARK))
        rows, at = changes.rows.select([field.name for field in fields]), 0
        while at < len(offsets):
            end = at + self.random.choice([1, 3, 50])
            own = offsets[at:end]
            part = rows.slice(at, end - at)
            here.apply(name, part, int(own[-1]) + 1, own, 0, watermarks_ns=marks[at:end])
            at = end
        here.apply(name, rows[:0], changes.cut[name], offsets[:0], 0)
        here.advance(name, changes.watermark_ns, changes.cut[name])
        if self.random.random() < 0.3:
            here.stabilize()
            here.check_invariants()
            self.receivers[number] = type(here).restore(self.plan, here.snapshot())

    def run(self) -> None:
        """Read everything, in any order."""
        left = True
        while left:
            left = False
            for share, sender in self.senders.items():
                for name in share:
                    left = (self.random.random() < 0.6 and self.read(sender, name)) or left
            for share in list(self.senders):
                if self.random.random() < 0.3:
                    self.give(share)
            for here in self.receivers:
                for name in here.cut:
                    if (source_of(self.plan, name).name,) == self.direct:
                        left = (self.random.random() < 0.6 and self.read(here, name)) or left
            left = left or self.is_behind

    @property
    def direct(self) -> tuple[str, ...]:
        """The source that the receivers read themselves."""
        repartitioned = {name.partition("/")[0] for share in self.senders for name in share}
        return tuple(one.name for one in self.plan.sources if one.name not in repartitioned)

    @property
    def is_behind(self) -> bool:
        """Whether some records were not read."""
        engines = [*self.senders.values(), *self.receivers]
        direct = [n for n in self.lanes if (source_of(self.plan, n).name,) == self.direct]
        read = {name: at for one in engines for name, at in one.cut.items()}
        senders = {name: at for one in self.senders.values() for name, at in one.cut.items()}
        ends = {name: read[name] for name in direct} | senders
        return any(at < len(self.lanes[name]) for name, at in ends.items())

    def finish(self) -> None:
        """Hand everything over, and end every window."""
        for share in list(self.senders):
            self.give(share)
        for here in self.receivers:
            here.close()
            here.stabilize()
            here.check_invariants()

    def digests(self) -> dict[str, str]:
        totals = dict.fromkeys((one.name for one in self.plan.outputs), 0)
        for here in self.receivers:
            for name, digest in here.digests.items():
                totals[name] = (totals[name] + int(digest, 16)) % (1 << 64)
        return {name: f"{total:016x}" for name, total in totals.items()}


def lanes_of(plan: Plan, random: Random) -> dict[str, list[Any]]:
    """Return the records of each input: trades by symbol, others anywhere."""
    lanes: dict[str, list[Any]] = {}
    for source in plan.sources:
        rows, count = records(random, source.name, 60), COUNTS[source.name]
        if source.name == "trades":
            shares = shares_of(rows, source, count)
        else:
            shares = [[] for _ in range(count)]
            for row in rows:
                random.choice(shares).append(row)
        lanes |= {f"{source.name}/{at}": share for at, share in enumerate(shares)}
    return lanes


def whole(plan: Plan, lanes: dict[str, list[Any]]) -> Engine:
    engine = Engine(plan, inputs=list(lanes))
    for name, rows in lanes.items():
        engine.apply(name, records_of(rows, source_of(plan, name).fields), len(rows))
    engine.close()
    engine.stabilize()
    return engine


@pytest.mark.parametrize("direct", ["trades", ""])
@pytest.mark.parametrize("seed", SEEDS)
def test_partitions_together_have_what_one_engine_has(seed: int, direct: str) -> None:
    random = Random(seed)
    compare(plan_of(random.sample(WAYS, random.randint(1, len(WAYS)))), direct, random)


@pytest.mark.parametrize("seed", SEEDS)
def test_branches_without_a_common_field_equal_one_engine(seed: int) -> None:
    random = Random(seed)
    compare(plan_of([apart, random.choice([windows, flat]), apart_of_one]), "", random)


def compare(plan: Plan, direct: str, random: Random) -> None:
    lanes = lanes_of(plan, random)
    one, divided = whole(plan, lanes), Divided(plan, lanes, direct, random)
    divided.run()
    divided.finish()
    assert divided.digests() == one.digests
    counted = one.counters_by_source
    for source in plan.sources:
        if source.name == direct:
            continue
        senders = [
            sender.counters
            for share, sender in divided.senders.items()
            if share[0].startswith(f"{source.name}/")
        ]
        for name in ("consumed", "applied", "very_late", "mildly_late", "dead_lettered", "future"):
            theirs = sum(getattr(each, name) for each in senders)
            assert theirs == getattr(counted[source.name], name), (source.name, name)
    for here in divided.receivers:
        assert here.counters.dead_lettered == (
            0 if not direct else here.counters_by_source["trades"].dead_lettered
        )

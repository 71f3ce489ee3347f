"""Pipelines with branches over stages, drawn at random."""

from __future__ import annotations

from random import Random
from typing import Any

import ripple as rp
from ripple.model.pipeline.division import undivided_why
from ripple.model.pipeline.plan import Plan
from ripple.model.pipeline.topology import stages_of
from tests.engine.machine.stage_plans import Trade


@rp.record(version=1)
class Quote:
    at: rp.Timestamp
    symbol: str
    bid: float


def random_tree(random: Random, *, sources: int = 1) -> Plan:
    """Return a plan that a cluster computes, of at least two stages and with a sink of events.

    sources: 1, trades alone; or 3, with more of them and quotes.
    """
    while True:
        plan = _drawn(random, _one() if sources == 1 else _three())
        is_whole = len(plan.sources) == sources
        if is_whole and undivided_why(plan) is None and len(stages_of(plan)) > 1:
            return plan


def as_trade(quote: Any) -> dict[str, Any]:
    """Return a quote as a trade of no size."""
    return {"symbol": quote.symbol, "venue": "A", "price": quote.bid, "size": 0, "t": quote.at}


def _one() -> list[Any]:
    start = rp.Pipeline("p").source("trades", Trade, time="t", out_of_order=3, key="symbol")
    return [start, start.filter("large", rp.col("size") > 1)]


def _three() -> list[Any]:
    market = rp.Pipeline("p")
    start = market.source("trades", Trade, time="t", out_of_order=3, key="symbol")
    more = market.source("more", Trade, time="t", out_of_order=20)
    quotes = market.source("quotes", Quote, time="at", key="symbol")
    mapped = quotes.map("mapped", as_trade, into=Trade)
    every = rp.union("every", start.filter("large", rp.col("size") > 1), more, mapped)
    return [start, rp.union("both", mapped, start), every]


def _drawn(random: Random, streams: list[Any]) -> Plan:
    whole = random.choice(streams).sink("events")
    # By each fold, the fields that may be keys of further ones.
    folds: list[tuple[Any, list[str]]] = []
    for at in range(random.randint(1, 3)):
        of, key = random.choice(streams), random.choice(["symbol", ("symbol", "venue")])
        of = of.partition(f"by{at}", key=key)
        fields = ["symbol", *(["venue"] if key != "symbol" else [])]
        if random.random() < 0.5:
            window = random.choice([rp.Tumbling(10), rp.Sliding(12, 5)])
            of = of.window(f"w{at}", window, lateness=random.choice([0, 4]))
            fields.append("window_start_ns")
        folded = of.fold(f"e{at}", **{f"n{at}": rp.count(), f"x{at}": rp.sum("price")})
        if random.random() < 0.3:  # rows go, and groups may be left without any
            folded = folded.filter(f"few{at}", rp.col(f"n{at}") < random.randint(2, 6))
        folds.append((folded, [*fields, f"n{at}"]))
    for at in range(random.randint(1, 5)):
        of, fields = random.choice(folds)
        key = tuple(random.sample(fields, random.randint(0, min(2, len(fields)))))
        of = of.partition(f"p{at}", key=key, partitions=random.randint(1, 3) if key else None)
        value = fields[-1]
        some: dict[str, Any] = {f"m{at}": rp.count(), f"s{at}": rp.max(value)}
        if random.random() < 0.4:
            some[f"d{at}"] = rp.count_distinct(value)
        folds.append((of.fold(f"f{at}", **some), [*key, f"m{at}"]))
    for at, (fold, _) in enumerate(folds):
        whole = whole.also(fold.sink(f"out{at}"))
    plan: Plan = whole.plan()
    return plan

"""Pipelines with branches over stages, drawn at random."""

from __future__ import annotations

from random import Random
from typing import Any

import ripple as rp
from ripple.model.pipeline.division import undivided_why
from ripple.model.pipeline.plan import Plan
from ripple.model.pipeline.topology import stages_of
from tests.engine.machine.stage_plans import Trade


def random_tree(random: Random) -> Plan:
    """Return a plan that a cluster computes, of at least two stages and with a sink of events."""
    while True:
        plan = _drawn(random)
        if undivided_why(plan) is None and len(stages_of(plan)) > 1:
            return plan


def _drawn(random: Random) -> Plan:
    start = rp.Pipeline("p").source("trades", Trade, time="t", out_of_order=3, key="symbol")
    large = start.filter("large", rp.col("size") > 1)
    whole = random.choice([start, large]).sink("events")
    # By each fold, the fields that may be keys of further ones.
    folds: list[tuple[Any, list[str]]] = []
    for at in range(random.randint(1, 3)):
        of, key = random.choice([start, large]), random.choice(["symbol", ("symbol", "venue")])
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

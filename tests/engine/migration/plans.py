"""Plans that differ in one part, and the states of their nodes."""

from __future__ import annotations

from typing import Any

import ripple.model.aggregate as ra
from ripple.engine.machine import Engine
from ripple.engine.machine.follower import Follower
from ripple.model.expression import col
from ripple.model.pipeline.builder import Pipeline
from ripple.model.pipeline.plan import Plan
from ripple.model.window import Tumbling
from tests.engine.machine.trades import Row, Trade, batch_of

ROWS: list[Row] = [("ab"[i % 2], 1.5 * i, i, 10 * i, "X") for i in range(40)]
DEFAULTS: dict[str, Any] = {
    "of": "money",
    "step": "derived",
    "lower": "minutes",
    "upper": "sums",
    "windows": True,
    "aggregate": ra.sum("volume"),
    "shown": ("minutes", "sums"),
    "price": col("price"),
    "via": None,
}


def plan_of(**changes: Any) -> Plan:
    one = DEFAULTS | changes
    trades = Pipeline("market").source("trades", Trade)
    events = trades.derive(one["step"], paid=one["price"]).partition("by-symbol", key="symbol")
    if one["windows"]:
        events = events.window("short", Tumbling(50), lateness=30)
    lower = events.fold(one["lower"], volume=ra.sum("size"), paid=ra.sum("paid"))
    whole = lower.partition("all", key=(), via=one["via"])
    built: Any = whole.fold(one["upper"], total=one["aggregate"])
    for number, fold in enumerate(one["shown"]):
        built = built.sink(f"{fold}-{number}", of=fold)
    plan: Plan = built.plan()
    return plan


def fed(engine: Engine, rows: list[Row], position: int = 0) -> Engine:
    engine.apply(engine.plan.source.name, batch_of(rows), position + len(rows))
    engine.stabilize()
    return engine


def states(plan: Plan) -> tuple[Engine, Follower]:
    """Both stages after half of the rows."""
    engine = fed(Engine(plan, staged=True), ROWS[:20])
    follower = Follower(plan, 1, ["0"])
    follower.follow("0", 1, engine.outgoing()[0])
    follower.stabilize()
    return engine, follower

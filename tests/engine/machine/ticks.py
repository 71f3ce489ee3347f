"""Disordered, broken and extreme events, and pipelines that do everything with them."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

import ripple.model.aggregate as ra
from ripple.engine.machine import Engine, Snapshot
from ripple.engine.snapshots.saving import PendingSnapshot
from ripple.model.aggregate import Aggregate
from ripple.model.expression import col
from ripple.model.pipeline.builder import Pipeline
from ripple.model.records.record import Timestamp, field, record
from ripple.model.window import (
    Assigner,
    OnCount,
    OnEveryElement,
    OnInterval,
    OnWatermark,
    Session,
    Sliding,
    Trigger,
    Tumbling,
)
from ripple.testing import Marker


@record(version=1)
class Tick:
    """A quote whose price may be missing."""

    symbol: str
    price: float | None
    size: int
    venue: str | None
    timestamp_ns: Timestamp


@record(version=1, name="tick")
class CheckedTick(Tick):
    """A quote of which not everything is believed."""

    symbol: str = field(min_length=1)
    price: float | None = field(finite=True, gt=-1e17, le=1e308)
    size: int = field(ge=0, lt=7)
    venue: str | None
    timestamp_ns: Timestamp


ASSIGNERS: list[Assigner] = [Tumbling(50), Sliding(60, 25), Session(30)]
TRIGGERS: list[Trigger] = [OnWatermark(), OnEveryElement(), OnInterval(35), OnCount(3)]

NASTY = [0.0, -0.0, 0.1, 1.0, 1e17, -1e17, 1e308, -1e308, 5e-324, math.inf, -math.inf, math.nan]
EXTREME_TIMES = [-(2**62), 2**62 - 1, 2**62, -(2**62) - 1, 2**63 - 1, -(2**63)]


SIZES = [1, 2, 3, 7, -2, 0]
# Of which sums leave 64 bits and come back.
HUGE_SIZES = [1, 1, 2, -2, 0, 2**63 - 1, 2**62, -(2**63), -(2**62)]


def ticks(
    *,
    broken: bool = True,
    extreme: bool = False,
    max_size: int = 45,
    sizes: list[int] = SIZES,
) -> st.SearchStrategy:
    """Return lists of events as dicts.

    Times are bursts around a slowly rising clock, with ties, gaps, and some far behind or ahead.
    broken: some have nulls where there must be none. extreme: some are at the ends of time.
    """
    jumps = st.sampled_from([0, 0, 0, 1, 3, 8, 20, 70, 200])
    disorder = st.sampled_from([0, 0, 0, -2, -9, -25, -60, -150, 40, 120])
    times = st.tuples(jumps, disorder)
    event = st.fixed_dictionaries(
        {
            "symbol": st.sampled_from(["AA", "BB", "C"] + ["", None] * broken),
            "price": st.sampled_from([*NASTY, 2.5, 3.25, None]),
            "size": st.sampled_from(sizes + [None] * broken),
            "venue": st.sampled_from(["X", "Y", None]),
            "timestamp_ns": times,
        }
    )
    if extreme:
        event = event | event.flatmap(
            lambda one: st.sampled_from(EXTREME_TIMES).map(lambda t: {**one, "timestamp_ns": t})
        )
    # Hypothesis prefers short lists, so the length is drawn apart.
    part = max_size // 3
    lengths = st.integers(0, 2).map(lambda third: third * part)
    lists = lengths.flatmap(lambda size: st.lists(event, min_size=size, max_size=size + part))
    return lists.map(_dated)


def of_two_inputs() -> st.SearchStrategy[tuple[list[Any], int]]:
    """Return lists of events of the inputs a and b, with a marker of b, and the index of that."""
    owners = st.lists(st.sampled_from(["a", "b"]), min_size=60, max_size=60)
    return st.builds(_with_marker, owners, ticks(max_size=30), st.integers(0, 30))


def _with_marker(
    owners: list[str], happened: list[dict[str, Any]], marker: int
) -> tuple[list[Any], int]:
    at = min(marker, len(happened))
    mixed: list[Any] = list(zip(owners, happened, strict=False))
    return [*mixed[:at], Marker("b", 150), *mixed[at:]], at


def _dated(drawn: list[dict[str, Any]]) -> list[dict[str, Any]]:
    clock, events = 0, []
    for event in drawn:
        time_ns = event["timestamp_ns"]
        if isinstance(time_ns, tuple):
            clock += time_ns[0]
            time_ns = clock + time_ns[1]
        events.append({**event, "timestamp_ns": time_ns})
    return events


AGGREGATES: dict[str, Aggregate] = {
    "n": ra.count(),
    "quoted": ra.count("price"),
    "total": ra.sum("price"),
    "volume": ra.sum("size"),
    "mean": ra.mean("price"),
    "mean_size": ra.mean("size"),
    "vwap": ra.vwap("price", "size"),
    "variance": ra.variance("price"),
    "deviation": ra.stddev_pop("size"),
    "low": ra.min("price"),
    "high": ra.max("size"),
    "first_venue": ra.min("venue"),
    "opened": ra.first("price"),
    "closed": ra.last("venue"),
    "candle": ra.ohlc("price"),
    "mid": ra.median("price"),
    "nearest": ra.percentile("size", 30, method="nearest-rank"),
    "best": ra.top_k("price", 2),
    "venues": ra.count_distinct("venue"),
    "newest": ra.last_row(["price", "venue", "size"]),
    "oldest": ra.first_row("venue"),
    "dearest": ra.arg_max("price", ["size", "venue"]),
    "smallest": ra.arg_min("size", "price"),
    "ranked": ra.top_rows(2, "venue", ["price", "size"]),
    "notional": ra.sum(col("price") * col("size")),
    "product": ra.custom(
        "size",
        init=lambda: (Fraction(1), 0),
        add=lambda state, x: (state[0] * x, state[1]) if x else (state[0], state[1] + 1),
        remove=lambda state, x: (state[0] / x, state[1]) if x else (state[0], state[1] - 1),
        merge=lambda one, other: (one[0] * other[0], one[1] + other[1]),
        result=lambda state: 0.0 if state[1] else float(state[0]),
        type=float,
        name="product",
    ),
}

# What a fold over result rows can take: nothing that needs the order of events.
TOTALS: dict[str, Aggregate] = {
    "rows": ra.count(),
    "grand_total": ra.sum("total"),
    "grand_volume": ra.sum("volume"),
    "grand_mean": ra.mean("mean"),
    "grand_vwap": ra.vwap("vwap", "n"),
    "grand_deviation": ra.stddev("deviation"),
    "lowest": ra.min("low"),
    "highest": ra.max("high"),
    "middle": ra.median("vwap"),
    "busiest": ra.top_k("n", 2),
    "sizes": ra.count_distinct("n"),
    "best": ra.arg_max("mean", ["n", "total"]),
    "worst": ra.arg_min("high", "low"),
    "ranked": ra.top_rows(2, "n", ["mean", "high"]),
}


def keyed(
    assigner: Assigner | None = None,
    trigger: Trigger | None = None,
    *,
    lateness: int = 60,
    out_of_order: int = 10,
    before: Any = None,
    of: type = Tick,
    reject_future: int | None = None,
    by: str | tuple[str, ...] = "symbol",
    partitions: int | None = None,
) -> Pipeline:
    """Return a pipeline up to its window; ``before`` adds steps on events."""
    pipeline = Pipeline("test").source(
        "ticks", of, out_of_order=out_of_order, reject_future=reject_future
    )
    if before is not None:
        pipeline = before(pipeline)
    pipeline = pipeline.partition("by-symbol", key=by, partitions=partitions)
    if assigner is not None:
        pipeline = pipeline.window("w", assigner, trigger=trigger, lateness=lateness, future=40)
    return pipeline


def finished(pending: PendingSnapshot) -> Snapshot:
    """Return the snapshot, made at once."""
    while not pending.step(1000):
        pass
    return pending.finish()


def counts(engine: Engine) -> dict[str, tuple[int, int]]:
    """Return how many rows of each fold cannot be computed, and how many of these are final."""
    return {name: (one.count, one.final) for name, one in engine.uncomputable.items()}


def sorted_rows(snapshot: Snapshot) -> dict[str, list[str]]:
    """Return the rows of all tables, in an order that slots have no part in."""
    return {
        key: [str(table.schema), *sorted(repr(row) for row in table.to_pylist())]
        for key, table in snapshot.tables.items()
    }

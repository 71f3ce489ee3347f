"""Pipelines of two and three stages with every kind of edge, and trades for them."""

from __future__ import annotations

from random import Random
from typing import Any

import ripple as rp
from ripple.model.pipeline.plan import Plan
from ripple.model.pipeline.stages import EdgeKind


@rp.record(version=1)
class Trade:
    symbol: str
    venue: str
    price: float
    size: int
    t: rp.Timestamp


def _merging() -> Any:
    return rp.custom(
        "size", init=lambda: [0], add=lambda s, x: [s[0] + x], remove=lambda s, x: [s[0] - x],
        merge=lambda a, b: [a[0] + b[0]], result=lambda s: s[0], type=int, name="own",
    )  # fmt: skip


def source(window: Any = None, lateness: str | int = 0) -> Any:
    pipeline = (
        rp.Pipeline("p")
        .source("trades", Trade, time="t", out_of_order=3)
        .partition("first", key=("symbol", "venue"))
    )
    if window is not None:
        pipeline = pipeline.window("w", window, lateness=lateness)
    return pipeline.fold(
        "rows", vwap=rp.vwap("price", "size"), n=rp.count(), size=rp.sum("size"),
        high=rp.max("price"),
    )  # fmt: skip


def plans() -> dict[str, Plan]:
    """Return pipelines with every kind of edge, of two and three stages."""
    running, tumbling = source(), source(rp.Tumbling(10), 4)
    sliding = source(rp.Sliding(12, 5), 0)

    def total(of: Any, key: Any = (), **aggregates: Any) -> Any:
        return of.partition("p2", key=key, partitions=3 if key else None).fold("x", **aggregates)

    partial = {
        "total": rp.sum("vwap"), "rows_n": rp.count(), "least": rp.min("high"),
        "most": rp.max("high"), "mean": rp.mean("vwap"), "spread": rp.stddev("vwap"),
        "own": _merging(),
    }  # fmt: skip
    whole = {
        "middle": rp.median("vwap"),
        "top": rp.top_k("size", 2),
        "kinds": rp.count_distinct("n"),
        "best": rp.arg_max("size", ["symbol", "vwap"]),
        "rows": rp.top_rows(2, "n", "symbol"),
    }
    window_key = ("venue", "window_start_ns")
    built = {
        "one-total": total(running, **partial),
        "by-venue": total(running, "venue", **partial),
        "by-value": total(running, "n", **partial),
        "rows-by-venue": total(running, "venue", **whole),
        "rows-by-value": total(running, "n", **whole),
        "windows": total(tumbling, "window_start_ns", **partial),
        "windows-by-venue": total(sliding, window_key, **partial),
        "rows-of-windows": total(tumbling, window_key, **whole),
        "outliving": total(tumbling, "venue", **partial),
        "events": total(tumbling, "venue", **whole),
        "total-by-value": total(running, rows_n=rp.count())
        .partition("p3", key="rows_n", partitions=3)
        .fold("y", kinds=rp.count_distinct("rows_n")),
        "three": total(running, "venue", **whole)
        .partition("p3", key="kinds", partitions=2)
        .fold("y", n=rp.count(), middle=rp.sum("middle"), low=rp.min("middle")),
        "three-windows": total(tumbling, window_key, **partial)
        .partition("p3", key="window_start_ns", partitions=2)
        .fold("y", n=rp.count(), total=rp.sum("total"), middle=rp.median("least"))
        .partition("p4", key=())
        .fold("z", n=rp.count(), total=rp.sum("total")),
    }
    plans = {}
    built["tree"] = tree()
    for name, pipeline in built.items():
        shown = pipeline if name == "tree" else pipeline.sink("last")
        for fold in shown.plan().folds:
            shown = shown.sink(f"shown-{fold.name}", of=fold.name)
        plans[name] = shown.plan()
    return plans


def tree() -> Any:
    """Return a pipeline with a sink of events, two folds of events, and stages over both.

    Three stages follow the first, two of them over the same windows; and two follow another stage,
    which has two folds, one over each.
    """
    start = rp.Pipeline("p").source("trades", Trade, time="t", out_of_order=3, key="symbol")
    large = start.filter("large", rp.col("size") > 1)
    rows = start.partition("first", key=("symbol", "venue")).fold(
        "rows", n=rp.count(), size=rp.sum("size"), high=rp.max("price")
    )
    bars = large.partition("second", key="symbol").window("w", rp.Tumbling(10), lateness=4)
    bars = bars.fold("bars", n=rp.count(), total=rp.sum("price"))
    by_venue = rows.partition("third", key="venue", partitions=3).fold(
        "by_venue", n=rp.sum("n"), middle=rp.median("size"), high=rp.max("high")
    )
    by_both = by_venue.partition("fourth", key=("venue", "n")).fold("by_both", high=rp.max("high"))
    by_n = by_both.partition("fifth", key="n", partitions=2).fold("by_n", kinds=rp.count())
    total = by_venue.partition("sixth", key=()).fold("total", n=rp.sum("n"), of=rp.count())
    times = bars.partition("seventh", key="window_start_ns", partitions=2)
    sums = times.fold("sums", n=rp.sum("n"), total=rp.sum("total"))
    middles = times.fold("middles", middle=rp.median("total"), kinds=rp.count_distinct("n"))
    ends = [one.sink(name) for name, one in (("n", by_n), ("t", total), ("s", sums))]
    whole = large.sink("events").also(middles.sink("m"))
    for one in ends:
        whole = whole.also(one)
    return whole


PLANS = plans()
KINDS = {
    "events": [EdgeKind.EVENT],
    "rows-by-venue": [EdgeKind.ROW],
    "rows-by-value": [EdgeKind.ROW],
    "rows-of-windows": [EdgeKind.ROW],
    "tree": [EdgeKind.ROW, EdgeKind.ROW, *[EdgeKind.PARTIAL] * 3],
    "total-by-value": [EdgeKind.PARTIAL, EdgeKind.ROW],
    "three": [EdgeKind.ROW, EdgeKind.PARTIAL],
    "three-windows": [EdgeKind.PARTIAL, EdgeKind.ROW, EdgeKind.PARTIAL],
}


def trades(random: Random, count: int) -> list[dict[str, Any]]:
    """Return trades of ten symbols whose times rise, with some late ones."""
    now, listed = 0, []
    for _ in range(count):
        now += random.choice([0, 0, 1, 1, 2, 7])
        listed.append(
            {
                "symbol": f"S{random.randrange(10)}",
                "venue": random.choice("ABC"),
                "price": random.choice([0.1, 1e17, -1e17, 2.5, 1e-9, 3.0]),
                "size": random.choice([1, 2, 3, 100]),
                "t": max(0, now - random.choice([0, 0, 0, 2, 5, 12])),
            }
        )
    return listed

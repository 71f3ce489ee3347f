"""Scans: running values, last rows, positions and steps; events a second of a core, beside Polars.

The rows must equal the rows of Polars, to the bit, before a time counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import ripple as rp
from bench.row import Row
from bench.timing import QUICK, cpu_in_turns
from ripple.engine.machine import Engine

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.model.pipeline.plan import Plan

EVENTS = 200_000 if QUICK else 2_000_000
STEPS = EVENTS // 5
ROUNDS = 3 if QUICK else 5
LATE_NS = 10**9


@rp.record(version=1)
class Trade:
    symbol: str
    size: int
    price: float
    number: int
    at_ns: rp.Timestamp


@dataclass
class Position:
    quantity: int = 0
    cost: int = 0


@dataclass
class Held:
    quantity: int
    cost: int


def bought(position: Position, trade: Trade) -> Held:
    """Add up the bought sizes."""
    position.quantity += trade.size
    position.cost += trade.size * trade.number
    return Held(position.quantity, position.cost)


SOURCE = rp.Pipeline("trades").source("trades", Trade)
COLUMNS: dict[str, Any] = {
    "lag": rp.lag("price"),
    "cum_max": rp.cum_max("price"),
    "ema of 20": rp.ema("price", span=20),
    "sum of the last 20": rp.rolling_sum("size", 20),
    "max of the last 20": rp.rolling_max("price", 20),
    "median of the last 20": rp.rolling_median("price", 20),
    "stddev of the last 20": rp.rolling_stddev("price", 20),
    "bars by volume": rp.bar("size", every=10_000),
}
LAST: dict[str, Any] = {
    "first of the last 20 rows": rp.first("size"),
    "distinct of the last 20 rows": rp.count_distinct("size"),
}

OWN = ("bars", "stddev", "distinct")  # Polars has none, or rounds more than once


def measure() -> list[Row]:
    rows = []
    for keys in (100, 10_000):
        trades = _trades(keys, EVENTS)
        for what, column in COLUMNS.items():
            plan = SOURCE.scan("running", "symbol", settled=True, lateness=LATE_NS, result=column)
            of_polars = None if what.startswith(OWN) else partial(_polars, trades, what)
            rows += _beside(f"{what}, {keys:,} keys", plan.sink("out").plan(), trades, of_polars)
        fewer = trades.slice(0, STEPS)
        last: dict[str, Any] = {"settled": True, "lateness": LATE_NS, "window": rp.Last(20)}
        for what, aggregate in LAST.items():
            plan = SOURCE.scan("last", "symbol", result=aggregate, **last).sink("out").plan()
            of_polars = None if what.startswith(OWN) else partial(_polars, fewer, what)
            rows += _beside(f"{what}, {keys:,} keys", plan, fewer, of_polars)
        steps = SOURCE.scan(
            "steps", "symbol", state=Position, step=bought, into=Held, settled=True,
            lateness=LATE_NS,
        ).derive("named", result=rp.col("cost"))  # fmt: skip
        plan = steps.sink("out").plan()
        rows += [_positions(method, keys, trades) for method in ("average", "fifo")]
        rows += _corrected(keys, fewer)
        of_polars = partial(_polars, fewer, "step")
        rows += _beside(f"a step in Python, {keys:,} keys", plan, fewer, of_polars)
    return rows


def _positions(method: str, keys: int, trades: pa.Table) -> Row:
    fills = SOURCE.derive("fills", quantity=rp.col("size") - 50, cents=rp.col("number") // 1000)
    of = rp.Position("quantity", "cents", method=method)
    rows = fills.scan("positions", "symbol", step=of, settled=True, lateness=LATE_NS)
    plan = rows.derive("named", result=rp.col("realized")).sink("out").plan()
    best = cpu_in_turns({"ours": partial(_ripple, plan, trades)}, ROUNDS)["ours"]
    return Row(f"positions by {method}, {keys:,} keys", trades.num_rows / best, "events/s")


def _corrected(keys: int, trades: pa.Table) -> list[Row]:
    """Measure rows with corrections by late ones, their reading included, beside none late."""
    source = rp.Pipeline("trades").source("trades", Trade, out_of_order=LATE_NS)
    fills = source.derive("fills", quantity=rp.col("size") - 50, cents=rp.col("number") // 1000)
    by: dict[str, Any] = {"key": "symbol", "lateness": 0}
    of = rp.Position("quantity", "cents", method="average")
    step: dict[str, Any] = {"state": Position, "step": bought, "into": Held}
    found = {
        "last positions": fills.scan("s", step=of, show="last", **by),
        "last rows of a step in Python": source.scan("s", show="last", **step, **by),
        "rows of a step in Python, corrected": source.scan("s", **step, **by),
    }
    at_ns = pa.array(np.arange(trades.num_rows) * 100_000 + LATE_NS)
    none_late = trades.set_column(trades.schema.names.index("at_ns"), "at_ns", at_ns)
    rows = []
    for what, scanned in found.items():
        plan = scanned.derive("named", result=rp.col("cost")).sink("out").plan()
        calls = {
            "late": partial(_ripple, plan, trades),
            "in order": partial(_ripple, plan, none_late),
        }
        best = cpu_in_turns(calls, ROUNDS)
        late, in_order = (trades.num_rows / best[of] for of in calls)
        rows.append(Row(f"{what}, {keys:,} keys", late, "events/s", "none late", in_order))
    return rows


def _beside(
    what: str, plan: Plan, trades: pa.Table, of_polars: Callable[[], pa.ChunkedArray] | None
) -> list[Row]:
    calls: dict[str, Callable[[], Any]] = {"ours": partial(_ripple, plan, trades)}
    if of_polars is not None:
        calls["Polars"] = of_polars
        assert calls["ours"]().equals(of_polars()), f"{what}: other rows than Polars'"
    best = cpu_in_turns(calls, ROUNDS)
    count, versus = trades.num_rows, "Polars, once"
    peer = count / best["Polars"] if of_polars is not None else None
    if peer is None:
        return [Row(what, count / best["ours"], "events/s")]
    return [Row(what, count / best["ours"], "events/s", versus, peer)]


def _trades(keys: int, count: int) -> pa.Table:
    """Return trades of which 1 % are late; prices have few digits, so that sums are exact."""
    rng = np.random.default_rng(7)
    at_ns = np.arange(count) * 100_000
    late = rng.random(count) < 0.01
    at_ns[late] -= rng.integers(0, LATE_NS, late.sum())
    names = pa.array([f"S{number}" for number in range(keys)])
    return pa.table(
        {
            "symbol": names.take(pa.array(rng.integers(0, keys, count))),
            "size": rng.integers(1, 100, count),
            "price": rng.integers(1, 10**6, count) / 64,
            "number": np.arange(count),
            "at_ns": at_ns + LATE_NS,
        }
    )


def _ripple(plan: Plan, trades: pa.Table) -> pa.ChunkedArray:
    engine, offset, found = Engine(plan), 0, []
    for batch in trades.combine_chunks().to_batches(max_chunksize=16_384):
        offset += batch.num_rows
        engine.apply("trades", batch, offset)
        found.append(engine.stabilize().outputs["out"].column("result"))
    engine.close()
    found.append(engine.stabilize().outputs["out"].column("result"))
    return pa.chunked_array(found)


def _polars(trades: pa.Table, what: str) -> pa.ChunkedArray:
    import polars as pl  # noqa: PLC0415 - of the extra bench

    price, size = pl.col("price"), pl.col("size")
    column = {
        "lag": price.shift(),
        "cum_max": price.cum_max(),
        "ema of 20": price.ewm_mean(span=20, adjust=False),
        "sum of the last 20": size.rolling_sum(20, min_samples=1),
        "max of the last 20": price.rolling_max(20, min_samples=1),
        "median of the last 20": price.rolling_median(20, min_samples=1),
        "first of the last 20 rows": size.shift(19).fill_null(size.first()),
        "step": (size * pl.col("number")).cum_sum(),
    }[what]
    ordered = pl.DataFrame(trades).sort("at_ns", "number")
    result = ordered.with_columns(result=column.over("symbol"))["result"]
    return pa.chunked_array([result.to_arrow()])

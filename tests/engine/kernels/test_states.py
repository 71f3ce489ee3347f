"""Accumulators that aggregates share, and those that they must not."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import ripple as rp
from ripple.engine.kernels.states import States
from ripple.engine.machine import Engine


@rp.record(version=1)
class Quote:
    symbol: str
    price: float | None
    size: int


def quotes(**aggregates: object) -> rp.Plan:
    """Return a fold of quotes by symbol."""
    by_symbol = rp.Pipeline("quotes").source("quotes", Quote).partition("by", key="symbol")
    return by_symbol.fold("all", **aggregates).sink("out").plan()


def bytes_a_slot(plan: rp.Plan) -> int:
    """Return how much the accumulators of a plan's fold take."""
    states = States(plan.folds[0].aggregates, retractable=False)
    states.reserve(1000)
    return states.nbytes // 1000


def test_a_sum_that_several_aggregates_rest_on_is_kept_once() -> None:
    total, mean, count = rp.sum("size"), rp.mean("size"), rp.count()
    assert bytes_a_slot(quotes(total=total, mean=mean, n=count)) == 32  # 16 and 8, aligned
    assert bytes_a_slot(quotes(total=total)) == 16


def test_sums_that_leave_out_different_rows_differ() -> None:
    plan = quotes(vwap=rp.vwap("price", "size"), total=rp.sum("size"), n=rp.count("price"))
    engine = Engine(plan)
    rows = {"symbol": ["a"] * 3, "price": [2.0, None, 4.0], "size": [1, 10, 1]}
    engine.apply("quotes", pa.RecordBatch.from_pydict(rows), 3)
    engine.stabilize()
    expected = [{"symbol": "a", "vwap": 3.0, "total": 12, "n": 2}]
    assert engine.table("out").to_pylist() == expected
    assert Engine.restore(plan, engine.snapshot()).table("out").to_pylist() == expected


def test_sums_of_many_keys_stay_what_they_are_while_records_grow() -> None:
    plan = quotes(total=rp.sum("size"), spread=rp.stddev("size"), most=rp.max("size"))
    engine = Engine(plan)
    sizes = np.arange(20_000)
    for at in range(0, len(sizes), 2_500):
        part = sizes[at : at + 2_500]
        rows = {"symbol": [f"{n % 5_000}" for n in part], "price": [None] * 2_500, "size": part}
        batch = pa.RecordBatch.from_pydict(
            rows,
            pa.schema([("symbol", pa.string()), ("price", pa.float64()), ("size", pa.int64())]),
        )
        engine.apply("quotes", batch, at + 2_500)
        engine.stabilize()
    table = engine.table("out").sort_by("most").to_pylist()
    assert [row["total"] for row in table] == [4 * n + 30_000 for n in range(5_000)]
    assert [row["most"] for row in table] == [n + 15_000 for n in range(5_000)]

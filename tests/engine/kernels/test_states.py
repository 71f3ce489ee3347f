"""Accumulators that aggregates share, and those that they must not."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

import ripple as rp
from ripple.engine.kernels.states import States
from ripple.engine.machine import Engine
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.model.aggregate.contract import Aggregate


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


@rp.record(version=1)
class Reading:
    key: str
    text: str | None
    real: float | None
    whole: int | None
    flag: bool | None
    at: rp.Timestamp
    kept: bool


@pytest.mark.parametrize("aggregate", [rp.last_row, rp.first_row])
def test_rows_of_columns_as_they_came_are_those_of_columns_without_some_rows(
    aggregate: Callable[[list[str]], Aggregate],
) -> None:
    readings = rp.Pipeline("readings").source("readings", Reading, out_of_order="1h")
    kept = readings.filter("kept", rp.col("kept")).partition("by-key", key="key")
    shown = kept.fold("row", row=aggregate(["text", "real", "whole", "flag"]), n=rp.count())
    plan = shown.sink("out").plan()
    rng = np.random.default_rng(5)
    values: dict[str, list[object]] = {
        "text": ["a", "b" * 20, "", None],
        "real": [-0.0, float("nan"), 1.5, None],
        "whole": [0, 7, -(1 << 62), None],
        "flag": [True, False, None],
    }
    rows = [
        {"key": f"{rng.integers(9)}", "at": int(rng.integers(99)), "kept": True}
        | {name: some[rng.integers(len(some))] for name, some in values.items()}
        for _ in range(300)
    ]
    schema = pa.schema(arrow_fields(plan.source.fields))
    dropped = {"key": "x", "at": 1, "kept": False} | dict.fromkeys(values)
    some, all_came = Engine(plan), Engine(plan)
    for at in range(0, 300, 60):
        batch = pa.RecordBatch.from_pylist([*rows[at : at + 60], dropped], schema)
        came = pa.RecordBatch.from_pylist(rows[at : at + 60], schema)
        some.apply("readings", batch)
        for part in (came.slice(0, 7), came.slice(7)):  # not from a byte of its bitmaps on
            all_came.apply("readings", part, at + at // 60 + 7 + (part.num_rows > 7) * 53)
        all_came.apply("readings", batch.slice(60), at + at // 60 + 61)
        changed = [one.stabilize().outputs["out"].to_pylist() for one in (some, all_came)]
        assert repr(changed[0]) == repr(changed[1])  # of NaN, too
        assert some.digests == all_came.digests
    states = [one.snapshot().tables for one in (some, all_came)]
    listed = [{name: one.to_pylist() for name, one in tables.items()} for tables in states]
    assert repr(listed[0]) == repr(listed[1])

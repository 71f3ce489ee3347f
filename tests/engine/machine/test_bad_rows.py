"""Rows that cannot be processed are reported one by one; the others are applied."""

from __future__ import annotations

import pyarrow as pa
import pytest

import ripple as rp
from ripple.engine.machine import Engine
from tests.engine.machine.trades import SCHEMA, Row, Trade, batch_of


def _trades(**columns: list) -> pa.RecordBatch:
    size = len(next(iter(columns.values())))
    whole = {
        "symbol": ["A"] * size,
        "price": [1.0] * size,
        "size": [1] * size,
        "timestamp_ns": [5] * size,
        "venue": ["X"] * size,
        **columns,
    }
    return pa.RecordBatch.from_arrays(
        [pa.array(whole[f.name], f.type) for f in SCHEMA], schema=SCHEMA
    )


def _by_symbol() -> rp.Pipeline:
    return rp.Pipeline("p").source("trades", Trade).partition("by-symbol", key="symbol")


def test_overflow_in_an_aggregates_input_rejects_the_row_alone() -> None:
    fold = _by_symbol().fold("f", total=rp.sum(rp.col("size") * rp.col("size")), n=rp.count())
    engine = Engine(fold.sink("out").plan())
    rejected = engine.apply("trades", _trades(size=[2, 2**40, 3]), 3)
    assert [(bad.row, bad.step) for bad in rejected] == [(1, "f")]
    assert "overflow" in rejected[0].reason
    (row,) = engine.stabilize().outputs["out"].to_pylist()
    assert (row["total"], row["n"]) == (13, 2)
    assert engine.counters.dead_lettered == 1
    engine.check_invariants()


def test_nulls_and_times_out_of_range_are_dead_letters() -> None:
    engine = Engine(_by_symbol().fold("f", n=rp.count()).sink("out").plan())
    batch = _trades(symbol=["A", None, "A", "A"], timestamp_ns=[1, 2, 2**62, None])
    rejected = engine.apply("trades", batch, 4)
    assert sorted(bad.row for bad in rejected) == [1, 2, 3]
    assert engine.counters.as_dict()["applied"] == 1
    engine.check_invariants()


def test_row_function_that_raises_rejects_its_row() -> None:
    def halve(trade: Trade) -> Trade:
        return Trade(
            trade.symbol, 1 / (trade.size - 2), trade.size, trade.timestamp_ns, trade.venue
        )

    pipeline = rp.Pipeline("p").source("trades", Trade).map("halve", halve, into=Trade)
    fold = pipeline.partition("by-symbol", key="symbol").fold("f", last=rp.last("price"))
    engine = Engine(fold.sink("out").plan())
    rejected = engine.apply("trades", _trades(size=[4, 2, 3]), 3)
    assert [(bad.row, bad.step) for bad in rejected] == [(1, "halve")]
    assert "ZeroDivisionError" in rejected[0].reason
    assert engine.stabilize().outputs["out"].column("last").to_pylist() == [1.0]


def test_batch_that_does_not_fit_consumes_nothing() -> None:
    engine = Engine(_by_symbol().fold("f", n=rp.count()).sink("out").plan())
    good: list[Row] = [("A", 1.0, 1, 5, "X")]
    with pytest.raises(rp.InputError, match="lacks the fields"):
        engine.apply("trades", pa.record_batch({"symbol": ["A"]}), 1)
    with pytest.raises(rp.InputError, match="no input 'quotes'"):
        engine.apply("quotes", batch_of(good), 1)
    engine.apply("trades", batch_of(good), 1)
    with pytest.raises(rp.InputError, match="must follow"):
        engine.apply("trades", batch_of(good), 1)
    assert engine.cut == {"trades": 1}


def test_snapshot_is_refused_while_changes_are_unseen() -> None:
    engine = Engine(_by_symbol().fold("f", n=rp.count()).sink("out").plan())
    engine.apply("trades", batch_of([("A", 1.0, 1, 5, "X")]), 1)
    with pytest.raises(rp.RippleError, match="stabilize before"):
        engine.snapshot()
    engine.stabilize()
    other = _by_symbol().fold("g", n=rp.count()).sink("out").plan()
    with pytest.raises(rp.RippleError, match=r"lacks the node trades.*g#"):
        Engine.restore(other, engine.snapshot())


def test_engine_that_failed_halfway_refuses_to_go_on() -> None:
    def broken(columns: dict) -> dict:
        raise KeyError("no such thing")

    pipeline = rp.Pipeline("p").source("trades", Trade).map("m", broken, into=Trade, batch=True)
    fold = pipeline.partition("by-symbol", key="symbol").fold("f", n=rp.count())
    engine = Engine(fold.sink("out").plan())
    with pytest.raises(rp.NodeError, match=r"map 'm'.*KeyError"):
        engine.apply("trades", _trades(size=[1]), 1)
    with pytest.raises(rp.NodeError, match="restore a snapshot"):
        engine.apply("trades", _trades(size=[1]), 2)
    with pytest.raises(rp.NodeError, match="restore a snapshot"):
        engine.stabilize()


def test_null_that_a_batch_function_makes_in_a_required_field_rejects_the_row() -> None:
    def blank(columns: dict) -> dict:
        return {**columns, "price": [1.0, None, 3.0]}

    pipeline = rp.Pipeline("p").source("trades", Trade).map("m", blank, into=Trade, batch=True)
    fold = pipeline.partition("by-symbol", key="symbol").fold("f", total=rp.sum("price"))
    engine = Engine(fold.sink("out").plan())
    rejected = engine.apply("trades", _trades(size=[1, 1, 1]), 3)
    assert [(bad.row, bad.step) for bad in rejected] == [(1, "m")]
    assert engine.stabilize().outputs["out"].column("total").to_pylist() == [4.0]

"""The inspection of a partition's graph."""

from __future__ import annotations

from random import Random

import pyarrow as pa

import ripple as rp
from ripple import Pipeline
from ripple.engine.machine import Engine
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.model.schema.types import Field, Float, Schema, String
from tests.engine.machine.random_trees import random_tree
from tests.engine.machine.stage_plans import PLANS, trades
from tests.engine.machine.staged import Spread


@rp.record
class Tick:
    symbol: str
    t: rp.Timestamp


def test_each_node_says_what_went_through_it() -> None:
    plan = PLANS["three"]
    engine = Engine(plan)
    schema = pa.schema(arrow_fields(plan.source.fields))
    for turn in range(4):
        rows = pa.RecordBatch.from_pylist(trades(Random(turn % 2), 20), schema)
        engine.apply(plan.source.name, rows, 20 * (turn + 1))
        engine.stabilize()
    found = engine.inspected()
    nodes = found["nodes"]
    assert nodes[0]["name"] == plan.source.name
    assert nodes[0]["rows_in"] == 80
    folds = [node for node in nodes if node["kind"] == "fold"]
    assert [node["name"] for node in folds] == [fold.name for fold in plan.folds]
    for below, above in found["edges"]:
        assert nodes[above]["rows_in"] == nodes[below]["rows_out"]
    for node in folds:
        assert node["recomputed"] == node["rows_out"] + node["cutoffs"]
        assert node["rows_out"] >= node["keys"] > 0
        assert node["bytes"] > 0
    outputs = {node["name"]: node for node in nodes if node["kind"] == "output"}
    for output in plan.outputs:
        assert outputs[output.name]["keys"] == engine.table(output.name).num_rows


def test_each_stage_shows_its_own_outputs_once() -> None:
    random = Random("tree")
    plan = random_tree(random)
    spread = Spread(plan, trades(random, 40), 1, random)
    spread.finish()
    shown = []
    for stage in spread.nodes:
        nodes = stage[0].engine.inspected()["nodes"]
        assert nodes[0]["kind"] == ("senders" if stage[0].engine.stage else "source")
        shown += [node["name"] for node in nodes if node["kind"] == "output"]
    assert sorted(shown) == sorted(output.name for output in plan.outputs)


def test_value_recomputed_to_the_same_is_a_cutoff() -> None:
    trade = Schema("trade", (Field("symbol", String()), Field("price", Float())))
    made = Pipeline("p").source("trades", trade).partition("by", key="symbol")
    plan = made.fold("high", high=rp.max("price")).sink("out", of="high").plan()
    engine = Engine(plan)
    for at, price in enumerate((2.0, 1.0, 3.0), 1):
        rows = pa.RecordBatch.from_pylist([{"symbol": "A", "price": price}])
        engine.apply("trades", rows, at)
        engine.stabilize()
    leaf = engine.inspected()["nodes"][1]
    assert (leaf["recomputed"], leaf["rows_out"], leaf["cutoffs"]) == (3, 2, 1)


def test_source_shows_the_counts_of_its_records() -> None:
    made = Pipeline("p").source("ticks", Tick).partition("by", key="symbol")
    made = made.window("w", rp.Tumbling("1s"), lateness="1s")
    plan = made.fold("n", n=rp.count()).sink("out", of="n").plan()
    engine = Engine(plan)
    second = 1_000_000_000
    for at, when in enumerate((0, 10 * second, 11 * second, 0, second), 1):
        rows = pa.RecordBatch.from_pylist(
            [{"symbol": "A", "t": when}], pa.schema(arrow_fields(plan.source.fields))
        )
        engine.apply("ticks", rows, at)
    source, *others = engine.inspected()["nodes"]
    assert source["rows_in"] == source["rows_out"] + source["very_late"]
    assert (source["very_late"], source["refused"]) == (2, 0)
    assert source["future"] == engine.counters.future
    assert {one["very_late"] for one in others} == {None}


def test_rows_that_come_by_the_watermark_have_nodes_of_their_own() -> None:
    ticks = Pipeline("p").source("ticks", Tick)
    first = ticks.distinct("first", "symbol", within="2s", lateness="3s")
    keyed = first.partition("by", key="symbol").window("w", rp.Tumbling("5s"))
    final = keyed.fold("bars", n=rp.count()).finals("final")
    other = first.distinct("other", "symbol", within="9s")
    over = final.partition("all", key="symbol").fold("sums", bars=rp.count())
    plan = over.sink("sums-out").also(other.sink("other-out")).also(final.sink("out")).plan()
    engine = Engine(plan)
    assert {node["watermark_ns"] for node in engine.inspected()["nodes"]} == {None}
    second = 1_000_000_000
    for at, when in enumerate((0, 1, 4, 5, 10, 30), 1):
        rows = pa.RecordBatch.from_pylist([{"symbol": "A", "t": when * second}])
        engine.apply("ticks", rows, at)
        engine.stabilize()
    found = engine.inspected()
    nodes = {node["name"]: node for node in found["nodes"]}
    names = [node["name"] for node in found["nodes"]]
    assert {(names[of], names[to]) for of, to in found["edges"]} == {
        *(("ticks", "first"), ("first", "bars"), ("bars", "final"), ("final", "sums")),
        *(("first", "other"), ("other", "other-out"), ("final", "out"), ("sums", "sums-out")),
    }
    assert [nodes[name]["kind"] for name in ("first", "final")] == ["distinct", "finals"]
    assert {name: nodes[name]["watermark_ns"] for name in ("first", "other", "final")} == (
        dict.fromkeys(("first", "other", "final"), 27 * second)
    )
    assert [nodes[name]["rows_out"] for name in ("first", "bars", "final", "other")] == [3, 2, 2, 1]
    assert [nodes[name]["rows_in"] for name in ("bars", "sums", "out")] == [3, 2, 2]
    assert nodes["first"]["bytes"] > 0

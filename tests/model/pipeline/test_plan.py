"""Plans: the hashes and node keys that workers and checkpoints rest on."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

import ripple as rp
import ripple.model.aggregate as rpa
from ripple.core.errors import PlanError
from ripple.model.canonical import canonical
from ripple.model.expression import col
from ripple.model.pipeline.builder import Pipeline
from ripple.model.pipeline.plan import Plan
from ripple.model.schema.types import Field, Float, Schema, String
from ripple.model.window import OnCount, OnEveryElement, Session, Sliding, Tumbling
from tests.plan_example import TRADE, Quote, mapped, to_quote


def _source(schema: Schema = TRADE) -> Pipeline:
    return Pipeline("vwap-60s").source("trades", schema, topic="raw-trades")


def _folded(source: Pipeline | None = None, **changes: Any) -> Pipeline:
    settings = {"assigner": Tumbling("60s"), "key": "symbol", "lateness": "60s"} | changes
    return (
        (source or _source())
        .partition("by-symbol", key=settings["key"])
        .window("1min", settings["assigner"], lateness=settings["lateness"])
        .fold("vwap", vwap=rpa.vwap("price", "size"), total_volume=rpa.sum("size"), n=rpa.count())
    )


def _plan(source: Pipeline | None = None, **changes: Any) -> Plan:
    return _folded(source, **changes).sink("output", topic="vwap-results").plan()


def test_the_topology_hash_is_pinned() -> None:
    # A change of these breaks every checkpoint: raise plan.FORMAT_VERSION and say so.
    plan = _plan()
    assert plan.folds[0].node_key == "trades/by-symbol/1min/vwap#bc11943a0c3805c2bb6173afa48d8aca"
    assert plan.topology_hash == "a4d0644a57fecbaa41b4a69d114e665b"


def test_equal_pipelines_have_equal_plans_in_another_process() -> None:
    code = "from tests.plan_example import mapped; print(mapped().topology_hash)"
    for seed in ("0", "1", "random"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        found = subprocess.run(
            [sys.executable, "-c", code],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert found.stdout.strip() == mapped().topology_hash


CHANGES: list[Any] = [
    lambda: _plan(assigner=Tumbling("61s")),
    lambda: _plan(assigner=Session("60s")),
    lambda: _plan(assigner=Sliding("60s", "60s")),
    lambda: _plan(lateness="59s"),
    lambda: _plan(key="venue"),
    lambda: _plan(_source().filter("f", col("size") > 0)),
    lambda: _plan(_source().filter("f", col("size") > 0.0)),
    lambda: _plan(_source().filter("f", col("size") >= 0)),
    lambda: _plan(Pipeline("vwap-60s").source("trades", TRADE, topic="other")),
    lambda: _plan(Pipeline("vwap-60s").source("ticks", TRADE, topic="raw-trades")),
    lambda: _plan(Pipeline("vwap-60s").source("trades", TRADE, out_of_order="1s")),
]


def test_every_change_of_meaning_changes_key_and_hash() -> None:
    plans = [_plan(), *(change() for change in CHANGES)]
    assert len({plan.folds[0].node_key for plan in plans}) == len(plans)
    assert len({plan.topology_hash for plan in plans}) == len(plans)


def test_triggers_and_aggregates_are_part_of_the_meaning() -> None:
    keyed = _source().partition("p", key="symbol")

    def fold(trigger: Any, **aggregates: Any) -> str:
        window = keyed.window("w", Tumbling("60s"), trigger=trigger)
        return window.fold("f", **aggregates).sink("o").plan().folds[0].node_key

    keys = [
        fold(OnEveryElement(), x=rpa.sum("size")),
        fold(OnCount(1), x=rpa.sum("size")),
        fold(OnCount(2), x=rpa.sum("size")),
        fold(OnCount(2), y=rpa.sum("size")),
        fold(OnCount(2), x=rpa.mean("size")),
        fold(OnCount(2), x=rpa.sum("price")),
        fold(OnCount(2), x=rpa.sum("size"), y=rpa.count()),
    ]
    assert len(set(keys)) == len(keys)
    assert fold(OnCount(2), x=rpa.sum(col("size"))) == keys[2]


def test_a_node_key_does_not_depend_on_what_is_elsewhere() -> None:
    key = _plan().folds[0].node_key
    longer = (
        _folded()
        .derive("d", double=col("vwap") * 2)
        .partition("all", key=())
        .fold("total", total=rpa.sum("double"))
        .sink("s1")
        .sink("s2", of="vwap")
        .plan()
    )
    assert longer.folds[0].node_key == key
    wider = Schema("trade", (Field("extra", String()), *TRADE.fields), version=2)
    assert _plan(_source(wider)).folds[0].node_key == key
    assert _plan(_source(wider)).topology_hash != _plan().topology_hash


def test_renaming_a_row_step_keeps_the_state_of_the_fold() -> None:
    first, second = (_plan(_source().filter(name, col("size") > 0)) for name in ("a", "b"))
    assert first.folds[0].node_key == second.folds[0].node_key
    assert first.topology_hash != second.topology_hash


def test_node_keys_are_distinct_within_a_plan() -> None:
    plan = _folded(_source().derive("d", x=col("size") + 1)).sink("a").sink("b").plan()
    keys = [plan.source.node_key, plan.steps[0].node_key, plan.folds[0].node_key]
    keys += [output.node_key for output in plan.outputs]
    assert len(set(keys)) == len(keys)


def _no_code(value: object) -> str:
    raise AssertionError(f"{value!r} is no code")


def test_an_object_without_comparable_meaning_is_refused() -> None:
    with pytest.raises(PlanError, match="its meaning cannot be compared"):
        canonical(object(), _no_code)


def test_a_plan_does_not_change() -> None:
    plan = _plan()
    with pytest.raises(AttributeError):
        plan.name = "other"  # type: ignore[misc]  # what the test is about
    with pytest.raises(KeyError):
        plan.fold("missing")
    assert plan.fold("vwap") is plan.folds[0]


def test_maps_name_the_class_of_their_rows() -> None:
    first = _source().map("quote", to_quote, into=Quote)
    plan = (
        first.map("again", to_quote, into=Quote)
        .derive("d", x=col("mid") + 1)
        .map("batch", dict, into=Quote, batch=True)
        .partition("p", key="symbol")
        .fold("f", m=rpa.mean("mid"))
        .map("result", dict, into=Schema("r", (Field("m", Float()), Field("symbol", String()))))
        .sink("o")
        .plan()
    )
    quote, again, _, batch = plan.steps
    assert (quote.row, quote.into) == (None, Quote)  # type: ignore[union-attr]  # they are maps
    assert again.row is Quote  # type: ignore[union-attr]
    assert (batch.row, batch.batch) == (None, True)  # type: ignore[union-attr]
    (result,) = plan.folds[0].steps
    assert result.kept == ("symbol",)  # type: ignore[union-attr]
    assert [field.name for field in plan.outputs[0].fields] == ["symbol", "m"]


def test_a_plan_describes_itself() -> None:
    text = (
        _folded(_source().filter("real", col("size") > 0))
        .partition("all", key=())
        .fold("total", total=rpa.sum("vwap"))
        .sink("output", topic="results")
        .plan()
        .describe()
    )
    for line in (
        'filter real: col("size") > 0',
        "stage 0: as many partitions as are configured, by symbol",
        "    key symbol (partition by-symbol)",
        "    window 1min: tumbling 1min, lateness 1min, OnWatermark()",
        '    vwap = vwap(col("price"), col("size"))',
        "partial edge vwap -> total: every aggregate decomposes into exact accumulators",
        "stage 1: 1 partition, by () (one total)",
        "    of total",
        "    topic results",
    ):
        assert line in text.splitlines()
    assert text.count("#") == 5


def test_description_tells_aggregates_of_one_name_apart() -> None:
    @rp.record(version=1)
    class Tick:
        k: str
        x: float

    plan = (
        rp.Pipeline("p")
        .source("s", Tick)
        .partition("by", key="k")
        .fold(
            "f",
            p=rp.percentile("x", 99.9),
            near=rp.percentile("x", 5, method="nearest-rank"),
            half=rp.median("x"),
            s=rp.stddev("x", ddof=0),
            best=rp.top_k("x", 3),
        )
        .sink("out")
        .plan()
    )
    told = [line.partition(" = ")[2] for line in plan.describe().splitlines() if " = " in line]
    assert told == [
        'percentile(col("x"), 99.9)',
        'percentile(col("x"), 5, nearest-rank)',
        'median(col("x"))',
        'stddev(col("x"), ddof=0)',
        'top_k(col("x"), 3)',
    ]

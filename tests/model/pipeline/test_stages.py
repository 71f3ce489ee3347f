"""Where plans are cut, and which edge is chosen: each row of the table in docs/stages.md."""

from __future__ import annotations

import re
from typing import Any

import pytest

import ripple as rp
from ripple.core.errors import PlanError
from ripple.model.pipeline.division import divided_why, need_one_division, undivided_why
from ripple.model.pipeline.plan import Plan
from ripple.model.pipeline.stages import EdgeKind, Transport
from ripple.model.pipeline.topology import (
    is_spread,
    outputs_of,
    several_stages_why,
    stages_after,
    stages_of,
    transport_into,
)


@rp.record(version=1)
class Trade:
    symbol: str
    venue: str
    price: float
    size: int
    timestamp_ns: rp.Timestamp


def running() -> rp.Pipeline:
    return (
        rp.Pipeline("p")
        .source("trades", Trade)
        .partition("by-symbol", key=("symbol", "venue"))
        .fold("vwap", vwap=rp.vwap("price", "size"), n=rp.count())
    )


def windowed() -> rp.Pipeline:
    return (
        rp.Pipeline("p")
        .source("trades", Trade)
        .partition("by-symbol", key=("symbol", "venue"))
        .window("1min", rp.Tumbling("60s"))
        .fold("vwap", vwap=rp.vwap("price", "size"), n=rp.count())
    )


def _union() -> Any:
    return rp.custom(
        "n", init=lambda: 0, add=lambda s, x: s + x, remove=lambda s, x: s - x,
        merge=lambda a, b: a + b, result=lambda s: s, type=int, name="union",
    )  # fmt: skip


def _alone() -> Any:
    return rp.custom(
        "n", init=lambda: 0, add=lambda s, x: s + x, remove=lambda s, x: s - x,
        result=lambda s: s, type=int, name="alone",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("pipeline", "key", "aggregate", "kind"),
    [
        (running(), (), rp.sum("vwap"), EdgeKind.PARTIAL),
        (running(), "venue", rp.min("vwap"), EdgeKind.PARTIAL),
        (running(), "venue", rp.stddev("vwap"), EdgeKind.PARTIAL),
        (running(), "venue", _union(), EdgeKind.PARTIAL),
        (windowed(), "venue", rp.sum("n"), EdgeKind.PARTIAL),
        (running(), "venue", rp.median("vwap"), EdgeKind.ROW),
        (running(), "venue", rp.top_k("vwap", 3), EdgeKind.ROW),
        (running(), "venue", rp.count_distinct("vwap"), EdgeKind.ROW),
        (running(), "venue", _alone(), EdgeKind.ROW),
        (windowed(), ("venue", "window_start_ns"), rp.median("vwap"), EdgeKind.ROW),
        (windowed(), "venue", rp.median("vwap"), EdgeKind.EVENT),
    ],
)
def test_the_first_edge_that_is_possible_is_taken(
    pipeline: rp.Pipeline, key: Any, aggregate: Any, kind: EdgeKind
) -> None:
    plan = pipeline.partition("again", key=key).fold("x", x=aggregate).sink("o").plan()
    first, second = stages_of(plan)
    assert first.edge is None
    assert second.edge is not None
    assert second.edge.kind is kind, second.edge.why
    transport = Transport.LOG if kind is EdgeKind.EVENT else Transport.EXCHANGE
    assert transport_into(plan, 1) is transport


def test_one_aggregate_that_needs_rows_decides_for_the_fold() -> None:
    pipeline = running().partition("v", key="venue").fold("x", a=rp.sum("n"), b=rp.median("vwap"))
    (_, second) = stages_of(pipeline.sink("o").plan())
    assert second.edge is not None
    assert second.edge.kind is EdgeKind.ROW
    assert second.edge.why.startswith("b needs the rows themselves")


def test_a_fold_whose_key_contains_the_partitions_key_stays_in_the_stage() -> None:
    pipeline = (
        windowed()
        .partition("same", key=("venue", "symbol", "window_start_ns"))
        .fold("x", x=rp.max("vwap"))
        .partition("total", key=())
        .fold("y", y=rp.sum("x"))
        .sink("o")
    )
    first, second = stages_of(pipeline.plan())
    assert (first.folds, second.folds) == (("vwap", "x"), ("y",))
    assert (first.partitions, second.partitions) == (None, 1)


def test_a_total_of_totals_is_a_stage_of_its_own_each_time() -> None:
    pipeline = (
        running()
        .partition("v", key="venue", partitions=3)
        .fold("x", x=rp.sum("n"))
        .partition("t", key=())
        .fold("y", y=rp.sum("x"))
        .sink("o")
    )
    assert [stage.partitions for stage in stages_of(pipeline.plan())] == [None, 3, 1]


def test_a_log_can_be_asked_for() -> None:
    plan = (
        running().partition("v", key="venue", via="log").fold("x", x=rp.sum("n")).sink("o").plan()
    )
    (_, second) = stages_of(plan)
    assert second.edge is not None
    assert second.edge.kind is EdgeKind.EVENT


def test_how_groups_are_spread_changes_no_hash() -> None:
    one = running().partition("v", key="venue").fold("x", x=rp.sum("n")).sink("o").plan()
    two = (
        running()
        .partition("v", key="venue", partitions=5)
        .fold("x", x=rp.sum("n"))
        .sink("o")
        .plan()
    )
    assert one.topology_hash == two.topology_hash


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"key": "venue", "partitions": 0}, "from 1 on"),
        ({"key": "venue", "partitions": True}, "from 1 on"),
        ({"key": "venue", "partitions": 2.0}, "from 1 on"),
        ({"key": (), "partitions": 2}, "one total is in one partition"),
        ({"key": "venue", "via": "kafka"}, "'log' is the only way"),
    ],
)
def test_a_spread_that_cannot_be_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        running().partition("v", **arguments)


def test_events_are_spread_as_their_input_is_unless_they_are_divided_anew() -> None:
    def described(**how: Any) -> list[str]:
        source = rp.Pipeline("p").source("trades", Trade)
        by = source.partition("s", key="symbol", **how).fold("f", n=rp.count())
        return by.sink("o").plan().describe().splitlines()

    assert "stage 0: as many partitions as are configured, by symbol" in described(partitions=4)
    divided = described(partitions=4, via="log")
    assert "event edge trades -> f: asked for by via='log'" in divided
    assert "stage 0: 4 partitions, by symbol" in divided
    assert "stage 0: 8 partitions, by symbol" in described(via="log")


def test_the_description_draws_stages_edges_and_reasons() -> None:
    plan = running().partition("t", key=()).fold("total", total=rp.sum("vwap")).sink("o").plan()
    lines = plan.describe().splitlines()
    assert "stage 0: as many partitions as are configured, by symbol, venue" in lines
    assert "partial edge vwap -> total: every aggregate decomposes into exact accumulators" in lines
    assert "stage 1: 1 partition, by () (one total)" in lines


def test_records_of_a_source_that_is_keyed_by_something_else_are_divided_anew() -> None:
    def keyed(source_key: Any, key: Any) -> Any:
        by = rp.Pipeline("p").source("trades", Trade, key=source_key).partition("by", key=key)
        return by.fold("f", n=rp.count()).sink("out").plan()

    for key in ("symbol", ("symbol", "venue"), ("venue", "symbol")):
        assert divided_why(keyed("symbol", key)) is None
        assert divided_why(keyed("symbol", key), ("venue",)) is None, (
            "what the pipeline says counts"
        )
    assert divided_why(keyed("symbol", "venue")) == (
        "records of trades are divided by symbol, and f needs all of one venue"
    )
    assert "by symbol, venue" in str(divided_why(keyed(("symbol", "venue"), "symbol")))
    assert divided_why(keyed(None, "venue")) is None
    assert divided_why(keyed(None, "venue"), ("venue",)) is None
    assert "by symbol" in str(divided_why(keyed(None, "venue"), ("symbol",)))
    assert "by nothing" in str(divided_why(keyed(None, "venue"), ()))
    with pytest.raises(PlanError, match="no field 'nothing'"):
        keyed("nothing", "symbol")
    plan = keyed("symbol", "venue")
    assert plan.source.key == ("symbol",)
    described = plan.describe().splitlines()
    assert "    keyed by symbol" in described
    at = described.index(f"event edge trades -> f: {divided_why(plan)}")
    assert described[at + 1].startswith("    through repartition topic ")
    assert described[at + 2] == "stage 0: 8 partitions, by venue"


def test_a_key_of_the_source_changes_no_topology() -> None:
    def plan(key: Any) -> Any:
        by = rp.Pipeline("p").source("trades", Trade, key=key).partition("by", key="symbol")
        return by.fold("f", n=rp.count()).sink("out").plan()

    assert plan("symbol").topology_hash == plan(None).topology_hash


def branches(*keys: Any, source_key: Any = None, **how: Any) -> Plan:
    """Return a plan with a sink of events and a fold by each of the keys."""
    start = rp.Pipeline("p").source("trades", Trade, key=source_key)
    whole = start.sink("events")
    for at, key in enumerate(keys):
        by = start.partition(f"by-{at}", key=key, **how).fold(f"f{at}", n=rp.count())
        whole = whole.also(by.sink(f"out-{at}"))
    return whole.plan()


def test_branches_are_one_stage_where_the_partitions_of_the_source_fit_all() -> None:
    plan = branches(("venue", "symbol"), "symbol")
    (stage,) = stages_of(plan)
    assert (stage.key, stage.folds, stage.edge) == (("symbol",), ("f0", "f1"), None)
    assert divided_why(plan) is None
    assert undivided_why(plan) is None
    assert undivided_why(plan, {plan.source.name: ("symbol",)}) is None
    assert "stage 0: as many partitions as are configured, by symbol" in plan.describe()
    assert undivided_why(branches()) is None
    assert undivided_why(branches(), {branches().source.name: ()}) is None
    assert "by the source's partitioning" in branches().describe()


@pytest.mark.parametrize(
    ("plan", "keyed_by", "why"),
    [
        (branches("symbol", "venue"), None, "in common: f0 is by symbol, f1 is by venue"),
        (branches("symbol"), ("venue",), "divided by venue, and f0 needs all of one symbol"),
        (branches("symbol"), (), "divided by nothing, and f0 needs all of one symbol"),
        (branches("symbol", "venue", source_key="symbol"), None, "by symbol, and f1 needs all"),
        (branches("symbol", via="log"), None, "f0 asks for via='log'"),
    ],
)
def test_branches_that_would_be_divided_in_two_ways_are_refused(
    plan: Plan, keyed_by: Any, why: str
) -> None:
    known = {plan.source.name: keyed_by}
    assert why in str(undivided_why(plan, known))
    with pytest.raises(PlanError, match=f"'p' has branches, which a cluster.*{re.escape(why)}"):
        need_one_division(plan, "a cluster", known)
    if keyed_by is None:
        assert f"one process computes all: {undivided_why(plan)}" in plan.describe()


def grown(*over: Any, source_key: Any = None) -> Plan:
    """Return a plan with folds by symbol and by both fields, and folds by further keys over it."""
    start = rp.Pipeline("p").source("trades", Trade, key=source_key)
    first = start.partition("a", key="symbol").fold("first", n=rp.count())
    both = start.partition("b", key=("venue", "symbol")).fold("both", n=rp.count())
    whole = start.sink("events").also(first.sink("out-first")).also(both.sink("out-both"))
    for at, key in enumerate(over):
        fold = both.partition(f"by-{at}", key=key).fold(f"f{at}", total=rp.sum("n"))
        whole = whole.also(fold.sink(f"out-{at}"))
    return whole.plan()


def test_folds_over_folds_of_branches_begin_stages_of_a_tree() -> None:
    plan = grown("venue", (), ("symbol", "n"))
    first, venue, one = stages_of(plan)
    assert (first.key, first.folds, first.before) == (("symbol",), ("first", "both", "f2"), None)
    assert (venue.key, venue.folds, venue.partitions, venue.before) == (("venue",), ("f0",), 8, 0)
    assert (one.key, one.folds, one.partitions, one.before) == ((), ("f1",), 1, 0)
    assert stages_after(plan, 0) == (venue, one)
    assert stages_after(plan, 1) == ()
    assert is_spread(plan)
    assert outputs_of(plan, 0) == {"events", "out-first", "out-both", "out-2"}
    assert outputs_of(plan, 2) == {"out-1"}
    assert undivided_why(plan) is None
    assert undivided_why(plan, {plan.source.name: ("symbol",)}) is None
    described = plan.describe()
    assert "stage 0: as many partitions as are configured, by symbol" in described
    assert "partial edge both -> f1: every aggregate" in described
    assert "stage 2: 1 partition, by () (one total)" in described


def test_folds_of_branches_with_a_field_in_common_stay_in_one_stage_unless_the_source_says() -> (
    None
):
    plans = []
    for key in (None, "symbol"):
        start = rp.Pipeline("p").source("trades", Trade, key=key)
        both = start.partition("b", key=("venue", "symbol")).fold("both", n=rp.count())
        over = both.partition("v", key="venue").fold("over", n=rp.sum("n"))
        plans.append(start.sink("events").also(over.sink("out")).plan())
    assert [[stage.folds for stage in stages_of(plan)] for plan in plans] == [
        [("both", "over")],
        [("both",), ("over",)],
    ]
    one, several = plans
    assert undivided_why(several, {"trades": ("symbol",)}) is None
    assert "over needs all of one venue, for which .source(..., key=['symbol']) makes" in str(
        undivided_why(one, {"trades": ("symbol",)})
    )


def test_stages_of_branches_are_one_where_the_plan_is_refused() -> None:
    plan = grown("venue", source_key="venue")
    assert "records of trades are divided by venue, and first needs all of one symbol" in str(
        undivided_why(plan)
    )
    (stage,) = stages_of(plan)
    assert set(stage.folds) == {"first", "both", "f0"}
    assert not is_spread(plan)


def test_event_edge_between_branches_is_refused() -> None:
    start = rp.Pipeline("p").source("trades", Trade, key="symbol")
    bars = (
        start.partition("a", key="symbol").window("w", rp.Tumbling(10)).fold("bars", n=rp.count())
    )
    middle = bars.partition("b", key="n").fold("middle", of=rp.median("window_start_ns"))
    plan = start.sink("events").also(middle.sink("out")).plan()
    why = "middle needs an event edge from bars (of needs the rows themselves, and groups outlive"
    assert why in str(undivided_why(plan))
    with pytest.raises(PlanError, match=re.escape(why)):
        need_one_division(plan, "a cluster")
    assert f"one process computes all: {undivided_why(plan)}" in plan.describe()


def test_why_branches_have_several_stages() -> None:
    assert several_stages_why(branches("symbol")) is None
    assert "f0 divides rows of both anew" in str(several_stages_why(grown("venue")))

"""The repartitioned sources, and their dividing fields."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import ripple as rp
from coordinator.decisions.compatibility import stage_differences, stages_of
from ripple.cli.cluster.up import need_own_count
from ripple.control.assignment import Code, empty, stage_names
from ripple.control.assignment.version import Stage
from ripple.core.errors import InputError, PlanError
from ripple.model.pipeline.new_division import NewDivision
from ripple.model.pipeline.repartitioned import (
    fields_of_outputs,
    need_division,
    repartitioned_into,
    repartitioned_sources,
)
from ripple.model.window import OnCount
from worker.engine.identity import code_of

Keys = dict[str, tuple[str, ...] | None]


@rp.record
class Trade:
    symbol: str
    venue: str
    t: rp.Timestamp


@rp.record
class Order:
    symbol: str
    account: int
    venue: str
    t: rp.Timestamp


def bys(found: dict[str, NewDivision]) -> Keys:
    """Return the fields by source, common to all nodes."""
    assert not any(one.others for one in found.values())
    return {name: one.by for name, one in found.items()}


def branches(*keys: Any, source: Any = (), above: Any = None, **others: Any) -> Any:
    """Return a plan of folds of trades by these keys, f0 and so on. above: of a fold over f0."""
    start = rp.Pipeline("one").source("trades", Trade, time="t", key=source or None, **others)
    folds = [
        start.partition(f"p{at}", key=key).fold(f"f{at}", n=rp.count(), last=rp.last("t"))
        for at, key in enumerate(keys)
    ]
    if above is not None:
        folds[0] = folds[0].partition("above", key=above).fold("over", m=rp.count())
    first, *rest = [fold.sink(f"o{at}") for at, fold in enumerate(folds)]
    for one in rest:
        first = first.also(one)
    return first.plan()


@pytest.mark.parametrize(
    ("keys", "known", "by", "others"),
    [
        (("symbol", "venue"), None, "symbol", {"f1": "venue"}),
        (("symbol", "venue"), ("venue",), "symbol", {"f1": "venue"}),
        ((("venue", "symbol"), "symbol", "venue"), (), "symbol", {"f2": "venue"}),
        ((("venue", "symbol"), "symbol"), ("venue",), "symbol", {}),
    ],
)
def test_branches_of_one_source_are_divided_by_their_own_fields(
    keys: Any, known: Any, by: str, others: dict[str, str]
) -> None:
    plan = branches(*keys)
    text = plan.describe()
    found = need_division(plan, "a cluster", {"trades": known}, is_one=False)
    division = NewDivision((by,), tuple((name, (key,)) for name, key in others.items()))
    assert found == {"trades": division}
    assert plan.describe() == text, "workers compare it"
    assert code_of(plan, repartitioned=found).stages == (("repartition-trades", 0), ("main", 8))
    assert need_division(plan, "a cluster", {"trades": known}, is_one=True) == {}
    assert need_division(plan, "a cluster", None, is_one=True) == {}


def test_fold_over_a_fold_is_in_the_partition_of_its_input() -> None:
    plan = branches(("symbol", "venue"), "venue", "symbol", above=("symbol", "n"))
    (found,) = need_division(plan, "a cluster", {"trades": ()}, is_one=False).values()
    assert found == NewDivision(("symbol",), (("f1", ("venue",)),))
    assert str(found) == "symbol; for f1 by venue"
    assert found.code == "symbol;f1:venue"
    by_output = fields_of_outputs(plan, {"trades": found})
    assert by_output == {"o0": ("symbol",), "o1": ("venue",), "o2": ("symbol",)}
    whole = branches("symbol", "venue", above=("n",))
    with pytest.raises(PlanError, match="and f0 needs all of one symbol: run it in one"):
        need_division(whole, "a cluster", {"trades": ()}, is_one=False)


def test_branches_that_fit_the_source_are_read_directly() -> None:
    plan = branches(("symbol", "venue"), "symbol", source="symbol")
    for known in (None, ("symbol",)):
        assert need_division(plan, "a cluster", {"trades": known}, is_one=False) == {}
    assert code_of(plan).stages == (("main", 0),)


def plan_of(on: Any = "symbol", window: Any = None, idle: str | None = None) -> Any:
    market = rp.Pipeline("market")
    trades = market.source("trades", Trade, time="t")
    orders = market.source("orders", Order, time="t", idle=idle)
    whole = trades.join_asof("near", orders, on=on, emit="final").sink("near-out")
    if window is not None:
        keyed = orders.partition("by", key=("account", "symbol"))
        fold = keyed.window("w", rp.Tumbling(10), trigger=window).fold("f", n=rp.count())
        whole = whole.also(fold.sink("f-out"))
    return whole.plan()


@pytest.mark.parametrize(
    ("on", "known", "repartitioned"),
    [
        ("symbol", {"trades": ("symbol",), "orders": ("symbol",)}, {}),
        ("symbol", {"trades": ("symbol",), "orders": ("account",)}, {"orders": ("symbol",)}),
        ("symbol", {"trades": ("venue",), "orders": ("symbol",)}, {"trades": ("symbol",)}),
        (
            ("symbol", "venue"),
            {"trades": ("venue",), "orders": ("symbol",)},
            {"orders": ("venue",)},
        ),
        ("symbol", {"trades": ("symbol",), "orders": ()}, {"orders": ("symbol",)}),
        ("symbol", {"trades": ("symbol",), "orders": None}, {"orders": ("symbol",)}),
        (
            "symbol",
            {"trades": ("venue",), "orders": ("account",)},
            {"trades": ("symbol",), "orders": ("symbol",)},
        ),
    ],
)
def test_sources_are_divided_by_fields_that_all_keys_have(
    on: Any, known: Keys, repartitioned: dict[str, tuple[str, ...]]
) -> None:
    plan = plan_of(on)
    assert bys(need_division(plan, "a cluster", known, is_one=False)) == repartitioned
    assert need_division(plan, "a cluster", known, is_one=True) == {}
    assert repartitioned_into(plan, repartitioned) == (8 if len(repartitioned) == 2 else 0)


@pytest.mark.parametrize(
    "plan",
    [plan_of(window=OnCount(3)), plan_of(idle="5s"), branches("symbol", "venue", idle="5s")],
)
def test_what_cannot_be_divided_anew_is_refused_with_a_way_out(plan: Any) -> None:
    known: Keys = {"trades": ("symbol",), "orders": ("account",)}
    with pytest.raises(PlanError, match="run it in one process") as refused:
        need_division(plan, "a cluster", known, is_one=False)
    assert "\n" not in str(refused.value)


def test_sources_that_would_share_a_topic_are_refused() -> None:
    market = rp.Pipeline("market")
    trades = market.source("a", Trade, time="t")
    orders = market.source("a.cuts", Order, time="t")
    plan = trades.join_asof("near", orders, on="symbol", emit="final").sink("near-out").plan()
    known: Keys = {"a": ("venue",), "a.cuts": ("account",)}
    with pytest.raises(PlanError, match=r"'a' and the records of 'a\.cuts' would be in one topic"):
        need_division(plan, "a cluster", known, is_one=False)


def test_another_number_of_partitions_than_the_pipeline_says_is_refused() -> None:
    symbol = NewDivision(("symbol",))
    plan, by = plan_of(), {"trades": symbol, "orders": symbol}
    for asked in (None, 8):
        need_own_count(plan, by, asked)
    need_own_count(plan, {"orders": symbol}, 2)
    with pytest.raises(InputError, match=r"into 8 partitions, not 2: leave --partitions out, or"):
        need_own_count(plan, by, 2)


def test_each_source_divided_anew_has_a_stage_in_front() -> None:
    code: Code = code_of(plan_of(), repartitioned={"orders": NewDivision(("symbol",))})
    assert code.stages == (("repartition-orders", 0), ("main", 0))
    assert dict(code.ends)["records orders"] == "symbol"
    stages = stage_names.counted(code.stages, 4, {"trades": 4, "orders": 6})
    assert stages == (Stage("repartition-orders", 2), Stage("main", 4))
    assert stage_names.reading(stages, "orders").partitions == 2
    assert stage_names.reading(stages, "trades").partitions == 4


def test_each_division_has_its_own_code() -> None:
    listed = [
        NewDivision(("a", "b")),
        NewDivision(("a,b",)),
        NewDivision(("a%2Cb",)),
        NewDivision(("a",), (("f", ("b",)),)),
        NewDivision(("a;f:b",)),
        NewDivision(("a",), (("f", ("b;g:c",)),)),
        NewDivision(("a",), (("f", ("b",)), ("g", ("c",)))),
    ]
    codes = [one.code for one in listed]
    assert len(set(codes)) == len(codes)
    assert codes[0] == "a,b"
    assert codes[-1] == "a;f:b;g:c"


def test_a_resting_cluster_keeps_the_fields_by_which_it_divides_records() -> None:
    inputs = {"trades": 4, "orders": 6}
    code: Code = code_of(plan_of(), repartitioned={"orders": NewDivision(("symbol",))})
    now = replace(empty(stages_of(code, 4, inputs)), version=3)
    assert now.stages == (Stage("repartition-orders", 2, "symbol"), Stage("main", 4))
    other = code_of(plan_of(), repartitioned={"orders": NewDivision(("symbol", "account"))})
    assert stage_differences(code, now, inputs) == []
    assert stage_differences(other, now, inputs) == [
        "its stages are repartition-orders of 2 by symbol,account, main of 4, the cluster's are "
        "repartition-orders of 2 by symbol, main of 4"
    ]
    begun = replace(now, stages=tuple(replace(one, by="") for one in now.stages))
    assert stage_differences(code, begun, inputs) == [], "of an earlier release"


def of_other_symbol(row: Trade) -> Trade:
    return Trade(symbol=row.symbol + "x", venue=row.venue, t=row.t)


@pytest.mark.parametrize(
    ("trades", "orders", "repartitioned"),
    [
        (("symbol",), ("account",), {}),
        (("venue",), ("account",), {"trades": ("symbol",), "orders": ("symbol",)}),
    ],
)
def test_a_map_may_change_keys_of_sources_divided_anew_alone(
    trades: tuple[str, ...], orders: tuple[str, ...], repartitioned: Keys
) -> None:
    """A record that is read where it is may have rows of keys of other partitions."""
    market = rp.Pipeline("market")
    mapped = market.source("trades", Trade, time="t").map("other", of_other_symbol, into=Trade)
    near = mapped.join_asof(
        "near", market.source("orders", Order, time="t"), on="symbol", emit="final"
    )
    plan = near.sink("near-out").plan()
    found = repartitioned_sources(plan, {"trades": trades, "orders": orders})
    assert bys(found) == repartitioned

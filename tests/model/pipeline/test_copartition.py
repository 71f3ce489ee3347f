"""Several sources divided alike, and the reasons why they are not."""

from __future__ import annotations

import re
from typing import Any

import pytest

import ripple as rp
from ripple.core.errors import PlanError
from ripple.model.pipeline.division import need_one_division, undivided_why
from ripple.model.pipeline.plan import Plan
from ripple.model.pipeline.topology import outputs_of, stages_of


@rp.record(version=1)
class Trade:
    symbol: str
    venue: str
    t: rp.Timestamp


@rp.record(version=1)
class Numbered:
    symbol: int
    venue: str
    t: rp.Timestamp


def plan_of(
    one: Any = "symbol",
    other: Any = "symbol",
    *,
    by: Any = "symbol",
    total: bool = False,
    record: type = Trade,
    via: Any = None,
) -> Plan:
    """Return a union of two sources, folded, and a fold and a sink of one of them."""
    start = rp.Pipeline("p")
    trades = start.source("trades", Trade, key=one)
    quotes = start.source("quotes", record, key=other)
    named = quotes.map("named", lambda row: row, into=Trade)
    both = rp.union("both", trades, named).partition("by", key=by, via=via)
    alone = trades.partition("alone", key=("venue", "symbol")).fold("own", n=rp.count())
    folded = both.fold("f", n=rp.count())
    if total:
        folded = folded.partition("all", key=()).fold("every", n=rp.sum("n"))
    whole = folded.sink("out").also(alone.sink("own-out"))
    return whole.also(quotes.sink("events")).plan()


def outliving() -> Plan:
    """Return a plan with a fold that needs an event edge, over windows of two sources."""
    start = rp.Pipeline("p")
    both = rp.union(
        "both",
        start.source("trades", Trade, time="t", key="symbol"),
        start.source("quotes", Trade, time="t", key="symbol"),
    )
    bars = both.partition("a", key="symbol").window("w", rp.Tumbling(10))
    middle = bars.fold("bars", n=rp.count()).partition("b", key="n")
    return middle.fold("middle", of=rp.median("window_start_ns")).sink("out").plan()


def test_sources_divided_by_the_same_fields_of_all_keys_are_one_stage() -> None:
    plan = plan_of()
    (stage,) = stages_of(plan)
    assert (stage.key, stage.folds, stage.edge) == (("symbol",), ("f", "own"), None)
    assert undivided_why(plan) is None
    assert undivided_why(plan, {"trades": None, "quotes": None}) is None
    assert "stage 0: as many partitions as are configured, by symbol" in plan.describe()
    told = plan_of(None, None)
    assert undivided_why(told) is None  # until the inputs are known
    assert undivided_why(told, {"trades": ("symbol",), "quotes": ("symbol",)}) is None
    both = ("symbol", "venue")
    assert undivided_why(plan_of(both, both, by=("venue", "symbol"))) is None


@pytest.mark.parametrize(
    ("plan", "keyed_by", "why"),
    [
        (
            plan_of("symbol", "venue"),
            None,
            "records of quotes are divided by venue, and f needs all of one symbol: write them to",
        ),
        (
            plan_of(None, None),
            {"trades": ("symbol",), "quotes": ()},
            "records of quotes are divided by nothing, and f needs all of one symbol: write them",
        ),
        (
            plan_of(None, None),
            {"trades": ("symbol",), "quotes": None},
            "nothing tells by which fields records of quotes are divided, and f needs all of one "
            "symbol: if their writer divides them by symbol, say .source('quotes', ..., "
            "key='symbol')",
        ),
        (
            plan_of(("symbol", "venue"), ("venue", "symbol"), by=("symbol", "venue")),
            None,
            "records of trades are divided by symbol, venue and those of quotes by venue, symbol, "
            "and f reads both: divide both by the same fields, in the same order",
        ),
        (
            plan_of(record=Numbered),
            None,
            "records of quotes are divided by symbol, which is an integer there and string in the "
            "key of f, and their hashes differ: declare symbol with one type in all sources",
        ),
        (
            plan_of(None, None, total=True),
            {"trades": ("symbol",), "quotes": ("symbol",)},
            "records of trades are divided by symbol, and every needs all of one total: say "
            ".source('trades', ..., key=['symbol']), and it gets its own stage; or run it in one",
        ),
        (
            outliving(),
            None,
            "middle needs an event edge from bars (of needs the rows themselves, and groups "
            "outlive the windows of bars), and there is no log between branches: fold the rows of "
            "bars in a pipeline of its own, from their sink; or run it in one process",
        ),
        (
            plan_of(("symbol", "venue"), ("symbol", "venue"), by=("symbol", "venue")),
            {"trades": ("symbol",), "quotes": ("venue",)},
            "records of trades are divided by symbol and those of quotes by venue, and f reads "
            "both: divide both by the same fields",
        ),
        (plan_of(via="log"), None, "f asks for via='log'"),
    ],
)
def test_sources_that_are_not_divided_alike_are_refused_with_a_remedy(
    plan: Plan, keyed_by: Any, why: str
) -> None:
    assert str(undivided_why(plan, keyed_by)).startswith(why.partition("; or")[0])
    with pytest.raises(
        PlanError, match=rf"^pipeline 'p' has the sources trades, quotes, .*{re.escape(why)}"
    ):
        need_one_division(plan, "a cluster", keyed_by)
    if keyed_by is None:
        assert f"one process computes all: {undivided_why(plan)}" in plan.describe()


def test_folds_over_sources_divided_alike_begin_stages_where_the_sources_say_how() -> None:
    plan = plan_of(total=True)
    first, total = stages_of(plan)
    assert (first.key, first.folds) == (("symbol",), ("f", "own"))
    assert (total.key, total.folds, total.before, total.partitions) == ((), ("every",), 0, 1)
    for keyed_by in (None, {"trades": ("symbol",), "quotes": None}):
        assert undivided_why(plan, keyed_by) is None
    assert outputs_of(plan, 0) == {"own-out", "events"}
    assert "partial edge f -> every: every aggregate decomposes" in plan.describe()
    (alone,) = stages_of(plan_of(None, None, total=True))  # until the inputs tell
    assert alone.folds == ("f", "every", "own")


def test_sources_that_never_meet_may_be_divided_in_two_ways() -> None:
    start = rp.Pipeline("p")
    folds = []
    for name, key in (("trades", "symbol"), ("quotes", "venue")):
        by_both = start.source(name, Trade, key=key).partition(f"{name}-p", key=("symbol", "venue"))
        fold = by_both.fold(f"{name}-n", n=rp.count())
        folds += [fold.partition(f"{name}-v", key="venue").fold(f"{name}-by", of=rp.sum("n"))]
    plan = folds[0].sink("one").also(folds[1].sink("other")).plan()
    assert undivided_why(plan) is None
    assert [stage.folds for stage in stages_of(plan)] == [
        ("trades-n", "quotes-n", "quotes-by"),
        ("trades-by",),
    ]


def test_inputs_that_tell_fewer_fields_than_the_pipeline_make_no_further_stage() -> None:
    both, told = ("symbol", "venue"), {"trades": ("symbol",), "quotes": ("symbol",)}
    for keys in ((both, both), ("symbol", both)):
        plan = plan_of(*keys, total=True)
        assert len(stages_of(plan)) == 1
        assert str(undivided_why(plan, told)).startswith(
            "records of trades are divided by symbol, and every needs all of one total: say "
            ".source('trades', ..., key=['symbol']), and it gets its own stage"
        )
        assert undivided_why(plan_of(*keys), told) is None

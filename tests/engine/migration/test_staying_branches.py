"""Code changes between two lives of a stage's partition, of a pipeline with branches."""

from __future__ import annotations

from typing import Any

import pytest

import ripple as rp
import ripple.model.aggregate as ra
from ripple.engine.machine import Engine
from ripple.engine.machine.follower import Follower
from ripple.engine.machine.source_router import source_router
from ripple.engine.machine.targets import Targets
from ripple.engine.migration.adaptation import ChangedPlanError, decide
from ripple.engine.migration.staying import is_only_more
from ripple.model.expression import col
from ripple.model.pipeline.builder import Pipeline
from ripple.model.pipeline.new_division import NewDivision
from ripple.model.pipeline.plan import Plan
from ripple.model.window import Tumbling
from tests.engine.machine.trades import Trade, batch_of
from tests.engine.migration.plans import ROWS, fed


def plan_of(
    large: str = "large",
    bars: str = "bars",
    sinks: tuple[str, ...] = ("events", "total", "times"),
    least: int = 3,
) -> Plan:
    """Return a plan with a sink of events, and two stages over one fold of windows."""
    trades = Pipeline("market").source("trades", Trade, key="symbol")
    events = trades.filter(large, col("size") > least)
    windows = events.partition("by", key="symbol").window("w", Tumbling(50), lateness=30)
    folded = windows.fold(bars, paid=ra.sum("price"))
    times = folded.partition("t", key="window_start_ns", partitions=1)
    ends: dict[str, Any] = {
        "events": events.sink("events"),
        "total": folded.partition("a", key=()).fold("all", paid=ra.sum("paid")).sink("total"),
        "times": times.fold("middles", paid=ra.median("paid")).sink("times"),
        "more": trades.sink("more"),
        "few": trades.filter("few", col("size") < 3).sink("few-out"),
        "sizes": events.partition("s", key="symbol")
        .fold("sizes", n=ra.sum("size"))
        .sink("sizes-out"),
        "over": folded.partition("o", key=()).fold("over", n=ra.count()).sink("over-out"),
        "bars": folded.sink("shown"),
    }
    first, *others = (ends[name] for name in sinks)
    for other in others:
        first = first.also(other)
    plan: Plan = first.plan()
    return plan


@pytest.mark.parametrize(
    "change", [{}, {"large": "above", "bars": "windows"}, {"sinks": ("total", "events", "times")}]
)
def test_names_change_and_all_stages_go_on(change: dict[str, Any]) -> None:
    before, after = plan_of(), plan_of(**change)
    engine = fed(Engine(before, staged=True), ROWS[:20])
    followers = {}
    for stage in (1, 2):
        follower = followers[stage] = Follower(before, stage, ["0"])
        follower.follow("0", 1, engine.sending(stage).table_for(0))
        follower.stabilize()

    first = decide(after, engine.snapshot(), staged=True).snapshot
    assert first is not None
    gone_on = fed(Engine.restore(after, first), ROWS[20:], 20)
    digests = dict(gone_on.digests)
    for stage, follower in followers.items():
        later = decide(after, follower.snapshot(), staged=True).snapshot
        assert later is not None
        above = Follower.restore(after, later)
        above.follow("0", 2, gone_on.sending(stage).table_for(0))
        above.stabilize()
        digests |= above.digests
    assert digests == fed(Engine(after), ROWS).digests


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"least": 4}, "step 'large': what it does changed"),
        ({"sinks": ("events", "total")}, "'middles' is gone"),
        ({"sinks": ("times", "events", "total")}, "its branches stand in another order"),
        ({"sinks": ("events", "total", "times", "more")}, "shows the events of 'trades'"),
        ({"sinks": ("events", "total", "times", "bars")}, "shows fold 'bars', which no output"),
    ],
)
def test_other_changes_are_refused(change: dict[str, Any], why: str) -> None:
    engine = fed(Engine(plan_of(), staged=True), ROWS[:20])
    with pytest.raises(ChangedPlanError, match=why):
        decide(plan_of(**change), engine.snapshot(), staged=True)


@pytest.mark.parametrize("more", [("few",), ("sizes",), ("sizes", "few", "more", "bars")])
def test_later_stages_go_on_beside_a_new_branch_of_the_first(more: tuple[str, ...]) -> None:
    before, after = plan_of(), plan_of(sinks=("events", *more, "total", "times"))
    engine = fed(Engine(before, staged=True), ROWS[:20])
    anew = fed(Engine(after, staged=True), ROWS)
    assert is_only_more(after, engine.snapshot())
    for stage in (1, 2):
        follower = Follower(before, stage, ["0"])
        follower.follow("0", 1, engine.sending(stage).table_for(0))
        follower.stabilize()
        assert not is_only_more(after, follower.snapshot())
        later = decide(after, follower.snapshot(), staged=True).snapshot
        assert later is not None
        above = Follower.restore(after, later)
        above.follow("0", 2, anew.sending(stage).table_for(0))
        above.stabilize()
        whole = fed(Engine(after), ROWS).digests
        assert above.digests == {name: whole[name] for name in above.digests}
    # Where one of its outputs holds something, the first stage has no state for it.
    if "few" in more:
        with pytest.raises(ChangedPlanError, match="step 'few' is new"):
            decide(after, engine.snapshot(), staged=True)


def test_a_new_branch_of_later_stages_is_refused() -> None:
    after = plan_of(sinks=("events", "total", "times", "few", "over"))
    engine = fed(Engine(plan_of(), staged=True), ROWS[:20])
    assert not is_only_more(after, engine.snapshot())
    with pytest.raises(ChangedPlanError, match="'over' is new, and not of the first stage alone"):
        decide(after, engine.snapshot(), staged=True)


def test_a_new_branch_takes_no_fold_to_another_stage() -> None:
    start = Pipeline("market").source("trades", Trade)
    both = start.partition("by", key=("symbol", "size")).fold("both", paid=ra.sum("price"))
    sums = both.partition("s", key="symbol").fold("sums", paid=ra.sum("paid")).sink("sums-out")
    more = start.partition("m", key="symbol").fold("most", most=ra.max("price")).sink("most-out")
    before, after = sums.plan(), sums.also(more).plan()
    engine = fed(Engine(before, staged=True), ROWS[:20])
    follower = Follower(before, 1, ["0"])
    follower.follow("0", 1, engine.sending(1).table_for(0))
    follower.stabilize()
    with pytest.raises(ChangedPlanError, match="fold 'sums' would be of another stage"):
        decide(after, follower.snapshot(), staged=True)


def of_two_sources(
    union: str = "both", sinks: tuple[str, ...] = ("out", "shown"), n: int = 2
) -> Plan:
    """Return a plan of two sources with another stage behind them."""
    market = Pipeline("market")
    sources = [market.source(f"trades{i}", Trade, key="symbol") for i in range(2)]
    taken = [one.filter(f"large{i}", col("size") > n) for i, one in enumerate(sources)]
    folded = (
        rp.union(union, *taken).partition("by", key="symbol").fold("sums", paid=ra.sum("price"))
    )
    whole = folded.partition("a", key=()).fold("all", paid=ra.sum("paid"))
    plan: Plan = whole.sink(sinks[0]).also(sources[0].sink(sinks[1])).plan()
    return plan


@pytest.mark.parametrize("engine_of", [Engine, source_router(Targets(NewDivision(("symbol",)), 2))])
def test_several_sources_go_on_under_other_names(engine_of: type[Engine]) -> None:
    only = {} if engine_of is Engine else {"inputs": ["trades0"]}
    engine = engine_of(of_two_sources(), staged=True, **only)
    engine.apply("trades0", batch_of(ROWS[:20]), 20)
    engine.stabilize()
    snapshot = engine.snapshot()
    after = of_two_sources("joined", ("rows", "events"))
    adapted = decide(after, snapshot, staged=True).snapshot
    assert adapted is not None
    assert engine_of.restore(after, adapted).cut == engine.cut
    with pytest.raises(ChangedPlanError, match="step 'large0': what it does changed"):
        decide(of_two_sources(n=3), snapshot, staged=True)

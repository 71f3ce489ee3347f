"""Sinks with the name of their own node, or of another source, step or fold."""

from __future__ import annotations

from typing import Any

import pytest

import ripple as rp
from ripple.engine.migration.evolution import Verdict, compare
from ripple.model.pipeline.builder import Pipeline
from ripple.model.pipeline.drawing import drawing
from ripple.model.pipeline.plan import Plan
from ripple.testing import CrashScenario, check_pipeline, explore, repeat
from tests.engine.machine.ticks import Tick
from tests.task import scenarios

NAMES = {"tap": "ticks", "large": "bars", "halves": "large", "fold": "halves", "sum": "sum"}
"""The sinks' names by their nodes: each the name of another node, the last one its own."""
APART = {shown: f"{shown}-out" for shown in NAMES}


def events(count: int) -> list[Any]:
    return [one for one in scenarios.events(count) if isinstance(one, dict)]


def halves(tick: Any) -> list[Any]:
    """Return a row twice."""
    return [tick, tick]


def named(names: dict[str, str], least: int = 1) -> Pipeline:
    """Return a tap, steps of both kinds and two folds, each with a sink of that name."""
    ticks = Pipeline("test").source("ticks", Tick, out_of_order=10)
    large = ticks.filter("large", rp.col("size") > least)
    twice = large.flat_map("halves", halves, into=Tick)
    bars = twice.partition("by-symbol", key="symbol").window("w", rp.Tumbling(40))
    fold = bars.fold("bars", n=rp.count(), size=rp.sum("size"))
    total = fold.partition("total", key=()).fold("sum", n=rp.sum("n"))
    whole = ticks.sink(names["tap"])
    shown = {"large": large, "halves": twice, "fold": fold, "sum": total}
    for name, branch in shown.items():
        whole = whole.also(branch.sink(names[name]))
    return whole


def keys(plan: Plan) -> list[str]:
    return [node.of.node_key for node in plan.computed]


def test_a_name_does_not_change_what_is_computed_nor_its_keys() -> None:
    plan, apart = named(NAMES).plan(), named(APART).plan()
    assert keys(plan) == keys(apart)
    assert len(set(plan.node_keys)) == len(plan.node_keys) == len(apart.node_keys)
    assert list(plan.notes) == list(apart.notes)
    assert plan.notes["code"] == apart.notes["code"]  # a sink has none, with any name
    assert [*plan.reads.values()] == [*apart.reads.values()]

    rows = events(40)
    one, other = rp.collect(named(NAMES), rows), rp.collect(named(APART), rows)
    for shown in NAMES:
        assert repr(one[NAMES[shown]].rows()) == repr(other[APART[shown]].rows())
    check_pipeline(named(NAMES), rows)


def test_a_picture_has_each_node_once() -> None:
    plan = named(NAMES).plan()
    drawn = drawing(plan)
    ids = [node["id"] for node in drawn["nodes"]]
    assert len({*ids}) == len(ids) == len(plan.nodes)
    into = {edge["to"]: edge["from"] for edge in drawn["edges"]}
    assert into["output ticks"] == "source ticks"
    assert into["output bars"] == "large"
    assert into["output halves"] == "bars"


def test_crashes_do_not_confuse_them() -> None:
    assert explore(CrashScenario(named(NAMES), events(8)), seeds=range(3)).lives > 3


def test_a_checkpoint_follows_a_frame_that_says_more_than_the_record_of_its_log() -> None:
    """The second power cut comes after the rows are durable, and before the record of their cut."""
    plan = "0.61:power_before:0 1.124:power_before:126"
    ran = repeat(CrashScenario(named(APART), events(8)), seed=0, plan=plan)
    assert ran.error is None
    assert "create fold-out-log/0/output.cut.tmp !power_before" in str(ran.trace.lines)


def snapshot(pipeline: Pipeline) -> Any:
    from ripple.model.schema.columns import records_of

    engine = rp.Engine(pipeline.plan())
    given = events(12)
    engine.apply("ticks", records_of(given, engine.plan.source.fields), len(given))
    engine.stabilize()
    return engine.snapshot()


def test_state_is_found_again_under_other_names_of_sinks() -> None:
    plan = named(NAMES).plan()
    verdicts = {one.verdict for one in compare(plan, snapshot(named(NAMES))).nodes}
    assert verdicts == {Verdict.KEEP}

    # A new fold behind a sink that is to be rebuilt is no fold above it.
    changed = compare(named(NAMES, least=2).plan(), snapshot(named(NAMES)))
    by_key = {one.key: one for one in changed.nodes}
    bars = next(fold for fold in named(NAMES, least=2).plan().folds if fold.name == "bars")
    assert (
        "the state of fold 'bars' in the checkpoint does not fit" in by_key[bars.node_key].refused
    )


def test_a_name_of_two_is_rebuilt_by_its_key() -> None:
    plan, before = named(NAMES, least=2).plan(), snapshot(named(NAMES))
    (problem,) = compare(plan, before, ["bars"]).other_problems
    fold, sink = plan.fold("bars").node_key, plan.output("bars").node_key
    assert problem == (
        "a step and a sink of events are called 'bars': say which one to rebuild, by its key: "
        f"--rebuild '{fold}' is the step, --rebuild '{sink}' the sink"
    )
    advice = " ".join(compare(plan, before).problems)
    assert f"say --rebuild '{fold}' to compute it again" in advice
    assert "--rebuild bars" not in advice
    rebuilt = {one.key: one for one in compare(plan, before, [fold]).nodes}
    assert rebuilt[fold].verdict is Verdict.REBUILD
    assert not rebuilt[fold].refused


def test_two_sinks_have_two_names() -> None:
    with pytest.raises(rp.PlanError, match="'bars-2', since sinks share one namespace"):
        named(NAMES).sink("bars")

"""A snapshot fits every plan that has its folds, with any sinks, and no other."""

from __future__ import annotations

from dataclasses import replace

import pytest

import ripple.model.aggregate as ra
from ripple.engine.machine import Engine, Snapshot, SnapshotError
from ripple.model.expression import col
from ripple.model.pipeline.builder import Pipeline
from ripple.model.pipeline.plan import Plan
from ripple.model.records.record import Timestamp, record
from ripple.model.window import Tumbling
from tests.engine.machine.trades import Row, Trade, batch_of

EVENTS: list[Row] = [(name, 2.0, size, 40 * size, "X") for size in (1, 2, 3) for name in "abc"]


@record(version=1)
class Bid:
    """A trade with a field more."""

    symbol: str
    price: float
    size: int
    timestamp_ns: Timestamp
    venue: str
    note: str | None


def plan_of(
    *sinks: str,
    windows: bool = False,
    floor: int | None = 0,
    ceiling: int | None = None,
    trade: type = Trade,
    total: bool = True,
) -> Plan:
    """Return a pipeline with these sinks, as name=fold."""
    pipeline = Pipeline("test").source("trades", trade).partition("by-symbol", key="symbol")
    if windows:
        pipeline = pipeline.window("w", Tumbling(50), lateness=0)
    pipeline = pipeline.fold("each", n=ra.count(), volume=ra.sum("size"))
    if floor is not None:
        pipeline = pipeline.filter("some", col("volume") > floor)
    if ceiling is not None:
        pipeline = pipeline.filter("few", col("volume") < ceiling)
    if total:
        pipeline = pipeline.partition("all", key=()).fold("total", volume=ra.sum("volume"))
    for sink in sinks:
        name, _, of = sink.partition("=")
        pipeline = pipeline.sink(name, of=of)
    return pipeline.plan()


def snapshot_of(plan: Plan) -> Snapshot:
    """Return one after the first six events."""
    engine = Engine(plan)
    engine.apply("trades", batch_of(EVENTS[:6]), 6)
    engine.stabilize()
    return engine.snapshot()


@pytest.mark.parametrize(
    "sinks", [("rows=each",), ("renamed=each", "sum=total"), ("sum=total",), ("a=each", "b=each")]
)
def test_snapshot_fits_a_plan_with_other_sinks(sinks: tuple[str, ...]) -> None:
    plan = plan_of(*sinks)
    engine, fresh = Engine.restore(plan, snapshot_of(plan_of("rows=each"))), Engine(plan)
    assert not any(batch.num_rows for batch in engine.stabilize().outputs.values())
    fresh.apply("trades", batch_of(EVENTS), len(EVENTS))
    engine.apply("trades", batch_of(EVENTS[6:]), len(EVENTS))
    fresh.stabilize()
    assert engine.stabilize().outputs.keys() == {sink.partition("=")[0] for sink in sinks}
    assert engine.digests == fresh.digests
    engine.check_invariants()


def test_windows_that_were_shown_keep_their_digest_under_another_name() -> None:
    before, plan = plan_of("rows=each", windows=True), plan_of("renamed=each", windows=True)
    assert Engine.restore(plan, snapshot_of(before)).digests.keys() == {"renamed"}


def test_folds_that_the_plan_lacks_are_left_behind() -> None:
    plan = plan_of("rows=each", total=False)
    assert Engine.restore(plan, snapshot_of(plan_of("rows=each"))).cut == {"trades": 6}


@pytest.mark.parametrize(
    ("before", "now", "why"),
    [
        (plan_of("r=each"), plan_of("r=each", floor=1), r"lacks the node .*/some#.*has .* instead"),
        (plan_of("r=each", total=False), plan_of("r=each"), r"lacks the node .*/total#.*has not"),
        (plan_of("r=each", ceiling=9), plan_of("r=each"), r"has the step .*few#.* on results"),
        (
            plan_of("r=each", floor=None, ceiling=9, total=False),
            plan_of("r=each", floor=None, total=False),
            r"has the step .*few#.* on results",
        ),
        (plan_of("r=each"), plan_of("r=each", trade=Bid), "another schema"),
        (
            plan_of("r=total", windows=True),
            plan_of("r=total", "s=each", windows=True),
            "no digest of 'each'",
        ),
    ],
)
def test_misfit_of_a_snapshot_is_named(before: Plan, now: Plan, why: str) -> None:
    with pytest.raises(SnapshotError, match=why):
        Engine.restore(now, snapshot_of(before))


def test_snapshots_without_nodes_fit_their_own_plan_alone() -> None:
    snapshot = replace(snapshot_of(plan_of("r=each")), nodes=())
    assert Engine.restore(plan_of("r=each"), snapshot).cut == {"trades": 6}
    with pytest.raises(SnapshotError, match="does not name its nodes"):
        Engine.restore(plan_of("s=each"), snapshot)

"""An engine's tables are a function of its prefix: not of batches, not of restarts."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ripple.model.window as rw
from ripple.engine.machine import Engine, Snapshot
from ripple.testing import Follower
from tests.engine.machine.shapes import ASSIGNERS, IDS, SHAPES, TRIGGERS, feed
from tests.engine.machine.trades import Row, batch_of, rows, vwap_plan
from tests.examples import FEW


@pytest.mark.parametrize(("assigner", "trigger"), SHAPES, ids=IDS)
@settings(max_examples=FEW)
@given(events=rows, cut=st.integers(0, 60), failing=st.booleans())
def test_tables_do_not_depend_on_batches_or_restarts(
    *,
    assigner: rw.Assigner | None,
    trigger: rw.Trigger | None,
    events: list[Row],
    cut: int,
    failing: bool,
) -> None:
    plan = vwap_plan(assigner, trigger, failing=failing)
    outcomes = []
    for size in (1, 7, 1000):
        engine, follower = Engine(plan), Follower(plan)
        feed(engine, follower, events[:cut], size)
        at_cut = (engine.digests, engine.counters.as_dict(), engine.watermark_ns)
        tables_at_cut = {name: dict(table) for name, table in follower.tables.items()}
        if size == 7:
            engine = Engine.restore(plan, _copied(engine))
            engine.check_invariants()
        feed(engine, follower, events, size)
        engine.close()
        follower.follow(engine.stabilize())
        engine.check_invariants()
        absent = {name: one.count for name, one in engine.uncomputable.items()}
        outcomes.append((at_cut, tables_at_cut, engine.digests, follower.tables, absent))
    assert outcomes[0] == outcomes[1]
    assert outcomes[0] == outcomes[2]


def _copied(engine: Engine) -> Snapshot:
    engine.stabilize()
    return engine.snapshot()


@given(events=rows)
def test_closed_windows_leave_no_state(events: list[Row]) -> None:
    for assigner in ASSIGNERS:
        engine = Engine(vwap_plan(assigner, None, total=False))
        engine.apply("trades", batch_of(events), len(events))
        engine.stabilize()
        engine.close()
        engine.stabilize()
        assert engine.table("rows").num_rows == 0
        assert len(engine._fold.space.index) == 0
        assert len(engine._fold.keys.index) == 0


@pytest.mark.parametrize("trigger", TRIGGERS)
def test_session_reopened_by_a_late_event_ends_again(trigger: rw.Trigger) -> None:
    """It ended at 30, a late event moved its end to 31, and the watermark came to 31."""
    plan = vwap_plan(rw.Session(30), trigger)
    engine = Engine(plan)
    events = [("IBM", 1.0, 1, 40, "X"), ("GOOG", 1.0, 1, 0, "X"), ("GOOG", 1.0, 1, 1, "X")]
    for at, event in enumerate([*events, ("IBM", 1.0, 1, 41, "X")]):
        engine.apply("trades", batch_of([event]), at + 1)
        engine.stabilize()
    shown = {r["symbol"]: r["window_end_ns"] for r in engine.table("rows").to_pylist()}
    assert shown["GOOG"] == 31
    assert Engine.restore(plan, engine.snapshot()).digests == engine.digests


def test_late_event_retracts_what_was_shown_and_corrects_it() -> None:
    engine = Engine(vwap_plan(rw.Tumbling(50), total=False), retractions=True)
    engine.apply("trades", batch_of([("A", 2.0, 1, 10, "X"), ("A", 9.0, 1, 60, "X")]), 2)
    first = engine.stabilize()
    assert first.retractions["rows"].num_rows == 0
    engine.apply("trades", batch_of([("A", 4.0, 1, 20, "X")]), 3)
    second = engine.stabilize()
    (was,), (now,) = second.retractions["rows"].to_pylist(), second.outputs["rows"].to_pylist()
    assert (was["window_start_ns"], was["vwap"], was["count"]) == (0, 2.0, 1)
    assert (now["window_start_ns"], now["vwap"], now["count"]) == (0, 3.0, 2)
    assert engine.counters.mildly_late == 1

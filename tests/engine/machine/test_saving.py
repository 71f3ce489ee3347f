"""A snapshot made in steps while events come in is the snapshot of the moment it was begun."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ripple.model.aggregate as ra
from ripple.engine.machine import Engine, Snapshot, SnapshotError
from ripple.engine.snapshots.increment import applied
from ripple.engine.snapshots.saving import Saving
from ripple.model.pipeline.builder import Pipeline
from tests.engine.machine.shapes import IDS, SHAPES
from tests.engine.machine.ticks import counts, finished, sorted_rows
from tests.engine.machine.trades import Row, Trade, batch_of, rows, vwap_plan
from tests.examples import FEW

each_shape = pytest.mark.parametrize(("assigner", "trigger"), SHAPES, ids=IDS)


def feed(engine: Engine, events: list[Row], upto: int, size: int) -> None:
    """Consume events below ``upto``, with a stabilize after each batch of ``size``."""
    for at in range(engine.cut["trades"], upto, size):
        part = events[at : min(at + size, upto)]
        engine.apply("trades", batch_of(part), at + len(part))
        engine.stabilize()


@each_shape
@settings(max_examples=FEW)
@given(
    events=rows,
    cut=st.integers(0, 60),
    shape=st.tuples(st.integers(1, 9), st.integers(1, 4), st.integers(1, 12)),
    failing=st.booleans(),
)
def test_snapshot_in_steps_equals_one_at_once(
    *, assigner, trigger, events: list[Row], cut: int, shape: tuple[int, int, int], failing: bool
) -> None:
    size, step, keys = shape
    events = [(f"{e[0]}{at % keys}", *e[1:]) for at, e in enumerate(events)]
    engine = Engine(vwap_plan(assigner, trigger, failing=failing))
    engine.apply("trades", batch_of(events[:cut]), len(events[:cut]))
    engine.stabilize()
    whole = engine.snapshot()
    pending = engine.begin_snapshot()
    for at in range(cut, len(events), size):
        part = events[at : at + size]
        engine.apply("trades", batch_of(part), at + len(part))
        engine.stabilize()
        pending.step(step)
    while not pending.step(1):
        pass
    assert pending.finish() == whole
    engine.stabilize()
    engine.check_invariants()


def rising(events: int) -> list[Row]:
    """Return trades of three symbols, with late ones that join two sessions of 30."""
    times = (15 * at - 70 * (at % 7 == 6) for at in range(events))
    return [("ABC"[at % 3], 1.5, 1 + at % 5, time, "X") for at, time in enumerate(times)]


def begun_midway(assigner: Any, trigger: Any) -> tuple[Snapshot, Snapshot]:
    """Return a snapshot made at once, and the same one made while events came in."""
    events = rising(90)
    engine = Engine(vwap_plan(assigner, trigger, lateness=100, failing=True))
    feed(engine, events, 40, 4)
    whole, pending = engine.snapshot(), engine.begin_snapshot()
    for upto in range(44, 90, 2):
        feed(engine, events, upto, 2)
        pending.step(1)
    while not pending.step(1):
        pass
    return whole, pending.finish()


@each_shape
def test_state_is_copied_before_events_change_it(assigner, trigger, monkeypatch) -> None:
    whole, copied = begun_midway(assigner, trigger)
    assert copied == whole
    # Without the copies before changes the same steps go wrong: the test can fail.
    monkeypatch.setattr(Saving, "keep", lambda *_: None)
    assert not _is_equal_without_copies(assigner, trigger)


def _is_equal_without_copies(assigner: Any, trigger: Any) -> bool:
    try:
        whole, copied = begun_midway(assigner, trigger)
    except (IndexError, ValueError, OverflowError, pa.ArrowInvalid):  # of slots that were freed
        return False
    return copied == whole


@each_shape
@settings(max_examples=FEW)
@given(
    events=rows,
    fate=st.lists(st.tuples(st.integers(1, 15), st.sampled_from("sfw")), min_size=1, max_size=6),
    shape=st.tuples(st.integers(1, 12), st.integers(1, 9)),
    failing=st.booleans(),
)
def test_changes_on_what_was_stored_make_the_whole_snapshot(
    *,
    assigner,
    trigger,
    events: list[Row],
    fate: list[tuple[int, str]],
    shape: tuple[int, int],
    failing: bool,
) -> None:
    """Each snapshot is stored (s), fails to be stored (f), or is one of everything, stored (w)."""
    keys, size = shape
    events = [(f"{e[0]}{at % keys}", *e[1:]) for at, e in enumerate(events)]
    plan = vwap_plan(assigner, trigger, failing=failing)
    engine = Engine(plan)
    stored = finished(engine.begin_snapshot())
    for more, outcome in fate:
        feed(engine, events, min(engine.cut["trades"] + more, len(events)), size)
        changes = finished(engine.begin_snapshot(None if outcome == "w" else stored.number))
        assert (changes.since is None) == (outcome == "w")
        made = changes if outcome == "w" else applied(stored, changes)
        twin = Engine(plan)
        feed(twin, events, engine.cut["trades"], size)
        assert sorted_rows(made) == sorted_rows(twin.snapshot())
        assert made.counters == twin.snapshot().counters
        restored = Engine.restore(plan, made)
        assert restored.digests == engine.digests
        assert counts(restored) == counts(engine)
        stored = stored if outcome == "f" else made


def test_changes_are_those_rows_alone_that_changed() -> None:
    engine = Engine(vwap_plan(total=False))
    feed(engine, rising(9), 9, 9)
    first = engine.snapshot()
    feed(engine, [*rising(9), ("B", 1.0, 1, 70, "X"), ("D", 1.0, 1, 70, "X")], 11, 1)
    (table,) = finished(engine.begin_snapshot(first.number)).tables.values()
    assert table.column_names[:2] == ["symbol", "ripple.op"]
    assert table.column("symbol").to_pylist() == ["B", "D"]


def test_changes_before_a_snapshot_of_everything_cannot_be_told() -> None:
    engine = Engine(vwap_plan(total=False))
    first = engine.snapshot()
    engine.snapshot()
    assert finished(engine.begin_snapshot(first.number)).since is None
    assert finished(Engine(vwap_plan(total=False)).begin_snapshot(7)).since is None


def test_changes_alone_restore_nothing() -> None:
    engine = Engine(vwap_plan(total=False))
    changes = finished(engine.begin_snapshot(engine.snapshot().number))
    with pytest.raises(SnapshotError, match="holds only what changed"):
        Engine.restore(engine.plan, changes)


def test_nothing_is_restored_as_nothing() -> None:
    keyed = Pipeline("test").source("trades", Trade).partition("p", key="symbol")
    total = keyed.fold("f", n=ra.count()).partition("all", key=()).fold("total", n=ra.sum("n"))
    plan = total.sink("out").plan()
    before = Engine(plan).snapshot()
    restored = Engine.restore(plan, before)

    assert restored.snapshot() == before
    assert restored.keys_held == 0

"""A snapshot made in steps while events come in is the snapshot of the moment it was begun."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripple.engine import Engine
from tests.engine.test_prefix import IDS, SHAPES
from tests.engine.trades import Row, batch_of, rows, vwap_plan


@pytest.mark.parametrize(("assigner", "trigger"), SHAPES, ids=IDS)
@settings(max_examples=40)
@given(
    events=rows,
    cut=st.integers(0, 60),
    shape=st.tuples(st.integers(1, 9), st.integers(1, 4), st.integers(1, 12)),
)
def test_snapshot_in_steps_equals_one_at_once(
    assigner, trigger, events: list[Row], cut: int, shape: tuple[int, int, int]
) -> None:
    size, step, keys = shape
    events = [(f"{e[0]}{at % keys}", *e[1:]) for at, e in enumerate(events)]
    engine = Engine(vwap_plan(assigner, trigger))
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

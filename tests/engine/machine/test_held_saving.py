"""Snapshots of held rows have the rows of the cut, while others come and leave."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripple.engine.machine import Engine
from ripple.engine.operators.held_rows import HeldRows
from ripple.engine.snapshots.internal import internal
from ripple.model.pipeline.plan import Plan
from ripple.model.schema.types import Field, Int
from tests.engine.machine.test_intake import WAYS, batch, plan
from tests.examples import EXAMPLES, SAMPLED

keys = st.tuples(st.sampled_from("abc"), st.integers(0, 2), st.booleans())
moments = st.lists(st.tuples(keys, st.integers(0, 12)), max_size=5)
turns = st.lists(st.tuples(st.booleans(), moments, st.integers(0, 9)), max_size=14)


class Fed:
    """An engine, and how far it has read."""

    def __init__(self, plan: Plan) -> None:
        self.engine = Engine(plan)
        self.read = {"left": 0, "right": 0}

    def feed(self, is_left: bool, rows: list[Any], since: int) -> None:
        name = "left" if is_left else "right"
        values = [(*key, since + time) for key, time in rows]
        self.read[name] += len(values)
        self.engine.apply(name, batch(values), self.read[name])
        self.engine.stabilize()


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=50 * EXAMPLES // SAMPLED)
@given(turns=turns, cut=st.integers(0, 14), most=st.integers(1, 3))
def test_a_snapshot_in_steps_is_that_of_its_cut(
    way: str, turns: list[Any], cut: int, most: int
) -> None:
    fed, still = Fed(plan(way)), Fed(plan(way))
    now, pending, expected, complete = 0, None, None, False
    for number, (is_left, rows, rise) in enumerate(turns):
        if number == cut:
            expected = still.engine.snapshot()
            pending = fed.engine.begin_snapshot()
        fed.feed(is_left, rows, now)
        if pending is None:
            still.feed(is_left, rows, now)
        else:
            complete = complete or pending.step(most)
        now += rise
    if pending is None:
        return
    while not complete:
        complete = pending.step(most)
    found = pending.finish()
    assert expected is not None
    assert found.tables == expected.tables
    restored = Engine.restore(plan(way), found)
    assert restored.digests == still.engine.digests


def held_rows(count: int) -> HeldRows:
    held = HeldRows((Field("number", Int()),))
    add(held, 0, count)
    return held


def add(held: HeldRows, first: int, count: int) -> None:
    numbers = pa.array(np.arange(first, first + count))
    held.add(pa.RecordBatch.from_arrays([numbers] * 3, schema=held.schema))


def test_rows_are_dropped_again_once_they_are_dumped_or_the_dump_is_given_up() -> None:
    held = held_rows(3000)
    first, second = held.saving(), held.saving()
    held.take_below(3000)
    assert held.rows.count == 3000
    first.complete()
    assert not held.may_drop()
    del second
    add(held, 3000, 1)
    held.take_below(4000)
    assert held.rows.count == 0
    assert first.table().column("number").to_pylist() == list(range(3000))


def test_a_dump_that_others_have_waited_for_is_completed() -> None:
    held = held_rows(2000)
    saving = held.saving()
    add(held, 2000, 2000)
    held.take_below(4000)
    assert (held.rows.count, saving.is_complete) == (4000, False)
    add(held, 4000, 2000)
    held.take_below(6000)
    assert (held.rows.count, saving.is_complete) == (0, True)
    assert saving.table().column("number").to_pylist() == list(range(2000))


def test_late_rows_are_dumped_in_their_order() -> None:
    fed = Fed(plan("text"))
    times = [12, 2, 11, 3, 10, 4, 9, 5, 8, 6, 7, 12]
    fed.engine.apply("left", batch([("a", 1, True, 100)]), 1)
    rows = [("a", at, True, 100 + time) for at, time in enumerate(times)]
    fed.engine.apply("right", batch([("a", 1, True, 113)]), 1)
    fed.engine.apply("right", batch(rows), 1 + len(rows))
    fed.engine.stabilize()
    pending = fed.engine.begin_snapshot()
    while not pending.step(5):
        pass
    found = [
        table.column(internal("time")).to_pylist()
        for table in pending.finish().tables.values()
        if table.num_rows > 1
    ]
    assert found == [sorted([*(100 + time for time in times), 113])]

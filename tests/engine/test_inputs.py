"""Several inputs: what is shown depends on how far each was read, not on who came first."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ripple.aggregate as ra
from ripple.plan import Plan
from ripple.testing import Marker, Reference, check_pipeline
from ripple.testing.check import Lane
from ripple.window import (
    OnCount,
    OnEveryElement,
    OnInterval,
    OnWatermark,
    Session,
    Sliding,
    Tumbling,
)
from tests.engine.ticks import EXAMPLES, keyed, ticks

NAMES = ("a", "b", "c")
logs = st.tuples(*[ticks(max_size=18)] * 3)
markers = st.lists(st.builds(Marker, st.sampled_from(NAMES), st.integers(-50, 400)), max_size=4)


def _plan(assigner: Any, trigger: Any) -> Plan:
    first = keyed(assigner, trigger).fold(
        "f",
        n=ra.count(),
        total=ra.sum("price"),
        opened=ra.first("venue"),
        closed=ra.last("size"),
        best=ra.top_k("price", 2),
    )
    second = first.partition("all", key="n").fold("g", total=ra.sum("total"), rows=ra.count())
    return second.sink("rows", of="f").sink("groups", of="g").plan()


def _interleaved(data: st.DataObject, log: tuple[list[Any], ...], marks: list[Marker]) -> list[Any]:
    """Return one order in which the inputs can be read, each in its own."""
    queues = {
        name: [(name, event) for event in events] for name, events in zip(NAMES, log, strict=True)
    }
    for mark in marks:
        queues[mark.source].append((mark.source, mark))
    turns = [name for name, queue in queues.items() for _ in queue]
    return [
        queues[name].pop(0)[1] if isinstance(queues[name][0][1], Marker) else queues[name].pop(0)
        for name in data.draw(st.permutations(turns))
    ]


@pytest.mark.parametrize(
    "trigger", [OnWatermark(), OnEveryElement(), OnInterval(35), OnCount(3)], ids=repr
)
@pytest.mark.parametrize("assigner", [None, Tumbling(50), Sliding(60, 25), Session(30)], ids=repr)
@settings(max_examples=4 * EXAMPLES)
@given(log=logs, marks=markers, data=st.data())
def test_inputs_read_in_turn_equal_the_reference(
    *, assigner: Any, trigger: Any, log: Any, marks: list[Marker], data: st.DataObject
) -> None:
    happenings = _interleaved(data, log, marks)
    check_pipeline(_plan(assigner, trigger), happenings, (1, 5, 1000), inputs=NAMES, restarts=[9])


@pytest.mark.parametrize("trigger", [OnWatermark(), OnEveryElement()], ids=repr)
@pytest.mark.parametrize("assigner", [None, Tumbling(50), Sliding(60, 25), Session(30)], ids=repr)
@settings(max_examples=6 * EXAMPLES)
@given(log=logs, marks=markers, data=st.data())
def test_tables_at_a_cut_do_not_depend_on_the_interleaving(
    *, assigner: Any, trigger: Any, log: Any, marks: list[Marker], data: st.DataObject
) -> None:
    plan = _plan(assigner, trigger)
    outcomes = []
    for size in (1, 4, 1000):
        lane, reference = Lane(plan, NAMES, size), Reference(plan, NAMES)
        for happening in _interleaved(data, log, marks):
            if isinstance(happening, Marker):
                lane.take(happening.source, happening)
                reference.advance(happening.source, happening.watermark_ns)
            else:
                lane.take(*happening)
                reference.apply(happening[1], happening[0])
            if lane.since >= size:
                lane.compare(reference)
        lane.compare(reference)
        engine = lane.engine
        outcomes.append((engine.digests, engine.counters.as_dict(), repr(reference.tables())))
    tables = [sorted(outcome[2]) for outcome in outcomes]
    assert outcomes[0][:2] == outcomes[1][:2] == outcomes[2][:2]
    assert tables[0] == tables[1] == tables[2]

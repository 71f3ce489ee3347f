"""Several inputs: tables depend on how far each was read, not on the order of arrival."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ripple.model.aggregate as ra
from ripple.core.errors import InputError
from ripple.engine.machine import Engine
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.model.pipeline.plan import Plan
from ripple.model.window import (
    OnCount,
    OnEveryElement,
    OnInterval,
    OnWatermark,
    Session,
    Sliding,
    Tumbling,
    watermark,
)
from ripple.testing import Marker, Reference, check_pipeline
from ripple.testing.check import Lane
from tests.engine.machine.ticks import keyed, ticks
from tests.examples import FEW

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
@settings(max_examples=FEW)
@given(log=logs, marks=markers, data=st.data())
def test_inputs_read_in_turn_equal_the_reference(
    *, assigner: Any, trigger: Any, log: Any, marks: list[Marker], data: st.DataObject
) -> None:
    happenings = _interleaved(data, log, marks)
    restarts = [min(9, len(happenings))]
    check_pipeline(
        _plan(assigner, trigger), happenings, (1, 5, 1000), inputs=NAMES, restarts=restarts
    )


@pytest.mark.parametrize("trigger", [OnWatermark(), OnEveryElement()], ids=repr)
@pytest.mark.parametrize("assigner", [None, Tumbling(50), Sliding(60, 25), Session(30)], ids=repr)
@settings(max_examples=FEW)
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


def _engine(**options: Any) -> Engine:
    return Engine(keyed(Tumbling(50)).fold("f", n=ra.count()).sink("o").plan(), **options)


def _batch(times: list[int]) -> pa.RecordBatch:
    schema = pa.schema(arrow_fields(_engine().plan.source.fields))
    event = {"symbol": "A", "price": 1.0, "size": 1, "venue": "X"}
    return pa.RecordBatch.from_pylist([event | {"timestamp_ns": t} for t in times], schema)


@pytest.mark.parametrize("watermark_ns", [2**63, 2**70, -(2**63) - 1, 1.0, True, None])
def test_marker_out_of_range_is_refused_and_consumes_nothing(watermark_ns: Any) -> None:
    engine = _engine()
    with pytest.raises(InputError, match="'ticks': a watermark is a whole number of nanoseconds"):
        engine.advance("ticks", watermark_ns, 1)
    assert engine.cut == {"ticks": 0}
    assert engine.watermark_ns == watermark.NONE


@pytest.mark.parametrize("next_offset", [-1, 2**63, 1.0, True, None])
def test_offset_out_of_range_is_refused_and_consumes_nothing(next_offset: Any) -> None:
    engine = _engine()
    with pytest.raises(InputError, match="'ticks': an offset is a whole number from 0 to"):
        engine.advance("ticks", 5, next_offset)
    if next_offset is not None:  # which stands for the one behind the rows
        with pytest.raises(InputError, match="'ticks': an offset is a whole number from 0 to"):
            engine.apply("ticks", _batch([]), next_offset)
        with pytest.raises(InputError, match="'ticks': an offset is a whole number from 0 to"):
            engine.apply("ticks", _batch([7]), next_offset, np.array([0]))
    with pytest.raises(InputError, match="'ticks': an offset is a whole number from 0 to"):
        _engine(start={"ticks": next_offset})
    assert engine.cut == {"ticks": 0}
    engine.advance("ticks", 5, 0)
    engine.apply("ticks", _batch([7]), 1)


def test_marker_that_leaves_records_out_is_refused() -> None:
    engine = _engine()
    engine.apply("ticks", _batch([1, 2]), 2)
    for next_offset in (0, 1, 4, 100):
        with pytest.raises(InputError, match=f"after it comes 3, not {next_offset}"):
            engine.advance("ticks", 9, next_offset)
    engine.advance("ticks", 9, 3)
    assert (engine.cut, engine.counters.consumed) == ({"ticks": 3}, 2)


def test_offsets_of_many_inputs_stay_apart_up_to_the_last_one() -> None:
    largest = (2**63 - 1) // 3
    engine = _engine(inputs=NAMES, start={"c": largest - 2})
    with pytest.raises(InputError, match=f"from 0 to {largest}"):
        engine.apply("c", _batch([1, 1, 1]), largest + 1)
    engine.apply("c", _batch([1, 1]), largest)
    with pytest.raises(InputError, match="a start is given for \\['d'\\]"):
        _engine(inputs=NAMES, start={"d": 1})


@pytest.mark.parametrize(
    "offsets",
    [
        np.array([0]),
        np.array([0, 1, 2]),
        np.array([1, 0]),
        np.array([0, 0]),
        np.array([-1, 0]),
        np.array([2, 3]),
        np.array([0.0, 1.0]),
        np.array([[0, 1]]),
    ],
    ids=str,
)
def test_offsets_that_do_not_fit_their_batch_are_refused(offsets: np.ndarray) -> None:
    engine = _engine()
    with pytest.raises(InputError, match=r"'ticks'.* offsets"):
        engine.apply("ticks", _batch([1, 2]), 3, offsets)
    assert engine.cut == {"ticks": 0}
    engine.apply("ticks", _batch([1, 2]), 3, np.array([0, 2]))
    assert (
        engine.counters.as_dict() | {"applied": 2, "dead_lettered": 1} == engine.counters.as_dict()
    )

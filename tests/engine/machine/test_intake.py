"""Whole batches held in one call: the same as each step of it, on batches of any rows."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ripple as rp
from ripple.core.errors import InputError
from ripple.engine.kernels.columns import Columns
from ripple.engine.machine import Engine
from tests.engine.machine.ticks import EXTREME_TIMES
from tests.examples import EXAMPLES, SAMPLED

if TYPE_CHECKING:
    from ripple.model.pipeline.plan import Plan


@rp.record(version=1)
class Order:
    symbol: str | None
    number: int = rp.field(ge=0)
    open: bool | None
    at_ns: rp.Timestamp


SCHEMA = pa.schema(
    {"symbol": pa.string(), "number": pa.int64(), "open": pa.bool_(), "at_ns": pa.int64()}
)
WAYS = ("text", "integer", "two", "eager", "interval", "outer", "distinct", "scan")

times = st.one_of(st.integers(0, 60), st.integers(0, 60), st.sampled_from([None, *EXTREME_TIMES]))
rows = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c" * 40, None]),
        st.sampled_from([0, 1, 2, 3, -1, None]),
        st.sampled_from([True, False, None]),
        times,
    ),
    max_size=4,
)
plain_rows = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 3), st.booleans(), st.integers(0, 60)),
    max_size=4,
)
turns = st.lists(st.tuples(st.booleans(), st.one_of(plain_rows, rows)), max_size=12)


@cache
def plan(way: str) -> Plan:
    pipeline = rp.Pipeline("orders")
    left, right = (
        pipeline.source(name, Order, out_of_order=5, reject_future=10_000)
        for name in ("left", "right")
    )
    keys = {"integer": "number", "two": ["symbol", "number"]}.get(way, "symbol")
    if way == "distinct":
        one = left.distinct("one", "number", within=10, lateness=8)
        return one.sink("out").also(right.sink("other")).plan()
    if way == "scan":
        before = left.scan("s", "number", settled=True, lateness=8, before=rp.lag("open"))
        return before.sink("out").also(right.sink("other")).plan()
    if way in ("interval", "outer"):
        how = "full" if way == "outer" else "left"
        joined = left.join_interval(
            "j", right, on=keys, within=(-5, 5), how=how, lateness=8, emit="final"
        )
    else:
        emit = "eager" if way == "eager" else "final"
        joined = left.join_asof("j", right, on=keys, lateness=8, emit=emit)
    return joined.sink("out").plan()


def batch(values: list[tuple[Any, ...]]) -> pa.RecordBatch:
    columns = list(zip(*values, strict=True)) or [()] * len(SCHEMA)
    arrays = [pa.array(one, kind) for one, kind in zip(columns, SCHEMA.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=60 * EXAMPLES // SAMPLED)
@given(turns=turns)
def test_a_batch_at_once_is_as_one_of_which_each_step_is_done(way: str, turns: list[Any]) -> None:
    at_once, by_steps = Engine(plan(way)), Engine(plan(way))
    read = {"left": 0, "right": 0}
    for is_left, values in turns:
        name, given_rows = "left" if is_left else "right", batch(values)
        first, read[name] = read[name], read[name] + len(values)
        # Offsets that are given are looked at, and so each step is done.
        offsets = np.arange(first, read[name])
        refused = at_once.apply(name, given_rows, read[name])
        assert refused == by_steps.apply(name, given_rows, read[name], offsets)
        changes = [one.stabilize() for one in (at_once, by_steps)]
        assert changes[0].outputs == changes[1].outputs
        assert changes[0].watermark_ns == changes[1].watermark_ns
        assert at_once.counters_by_source == by_steps.counters_by_source
        assert at_once.watermarks_ns == by_steps.watermarks_ns
    snapshots = [one.snapshot() for one in (at_once, by_steps)]
    assert snapshots[0].counters == snapshots[1].counters
    assert snapshots[0].tables == snapshots[1].tables
    assert snapshots[0].digests == snapshots[1].digests
    at_once.check_invariants()


def test_batches_without_anything_to_look_at_are_taken_at_once() -> None:
    engine = Engine(plan("text"))
    engine.apply("left", batch([("a", 1, True, 20)]), 1)
    port = engine._ports["left"]

    def is_taken(*values: tuple[Any, ...]) -> bool:
        columns = Columns(batch(list(values)), port.layout)
        return port.intake.take(columns, 1, 1, 15, 5) is not None

    assert is_taken(("a", 2, None, 21), ("c" * 40, 2, False, 14))  # which is late, but counts
    assert not is_taken(("a", 2, None, 21), (None, 2, False, 21))
    assert not is_taken(("a", 2, None, 21), ("b", -1, False, 21))
    assert not is_taken(("a", 2, None, 21), ("b", 2, False, None))
    assert not is_taken(("a", 2, None, 21), ("b", 2, False, 6))
    assert not is_taken(("a", 2, None, 21), ("b", 2, False, 10_100))
    assert port.alone.held.count == 3


def test_a_batch_without_gaps_is_not_taken_with_rejected_rows() -> None:
    engine = Engine(plan("text"))
    with pytest.raises(InputError, match="1 cannot have been rejected"):
        engine.apply("left", batch([("a", 1, True, 20)]), 1, rejected=1)
    assert engine.cut["left"] == engine.counters.consumed == 0

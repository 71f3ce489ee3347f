"""The engine against the interpreter that takes one event at a time and keeps nothing."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ripple as rp
import ripple.model.aggregate as ra
from ripple.model.window import Assigner, Session, Trigger
from ripple.testing import Marker, check_pipeline
from tests.engine.machine.shapes import SOME
from tests.engine.machine.ticks import (
    AGGREGATES,
    ASSIGNERS,
    HUGE_SIZES,
    TOTALS,
    TRIGGERS,
    CheckedTick,
    keyed,
    ticks,
)
from tests.examples import FEW

SHAPES = [(None, None), *itertools.product(ASSIGNERS, TRIGGERS)]
IDS = ["running" if a is None else f"{type(a).__name__}-{type(t).__name__}" for a, t in SHAPES]
each_shape = pytest.mark.parametrize(("assigner", "trigger"), SHAPES, ids=IDS)
some_shapes = pytest.mark.parametrize(("assigner", "trigger"), SHAPES[SOME], ids=IDS[SOME])


@each_shape
@settings(max_examples=FEW)
@given(events=ticks(max_size=30), restart=st.integers(1, 30))
def test_every_aggregate_equals_its_evaluation_from_scratch(
    assigner: Assigner | None, trigger: Trigger | None, events: list[Any], restart: int
) -> None:
    pipeline = keyed(assigner, trigger).fold("every", **AGGREGATES).sink("out")
    check_pipeline(pipeline, events, restarts=[min(restart, len(events))])


@some_shapes
@settings(max_examples=FEW)
@given(
    events=ticks(extreme=True),
    markers=st.dictionaries(st.integers(0, 45), st.integers(-50, 900), max_size=3),
    restart=st.integers(1, 45),
    group=st.sampled_from(["", "window_start_ns", "n"]),
)
def test_folds_of_folds_follow_every_change(
    *,
    assigner: Assigner | None,
    trigger: Trigger | None,
    events: list[Any],
    markers: dict[int, int],
    restart: int,
    group: str,
) -> None:
    if group == "window_start_ns" and (assigner is None or isinstance(assigner, Session)):
        group = "n"
    inputs = {name: AGGREGATES[name] for name in ("n", "total", "volume", "mean", "vwap")}
    inputs |= {name: AGGREGATES[name] for name in ("low", "high", "deviation")}
    pipeline = (
        keyed(assigner, trigger)
        .fold("by-group", **inputs)
        .partition("again", key=group or ())
        .fold("over-all", **TOTALS)
        .partition("once-more", key="rows")
        .fold("third", groups=ra.count(), sum=ra.sum("grand_total"))
        .sink("rows", of="by-group")
        .sink("totals", of="over-all")
        .sink("last")
    )
    happenings = list(events)
    for at, watermark_ns in sorted(markers.items(), reverse=True):
        happenings.insert(min(at, len(happenings)), Marker("ticks", watermark_ns))
    check_pipeline(pipeline, happenings, restarts=[min(restart, len(happenings))])


@some_shapes
@settings(max_examples=FEW)
@given(events=ticks(extreme=True), ahead=st.sampled_from([0, 50, 100]), restart=st.integers(1, 45))
def test_rejected_event_moves_no_watermark(
    assigner: Assigner | None,
    trigger: Trigger | None,
    events: list[Any],
    ahead: int,
    restart: int,
) -> None:
    inputs = {name: AGGREGATES[name] for name in ("n", "volume", "high", "opened", "closed")}
    pipeline = (
        keyed(assigner, trigger, of=CheckedTick, reject_future=ahead)
        .fold("by-group", **inputs)
        .sink("rows")
    )
    check_pipeline(pipeline, events, restarts=[min(restart, len(events))])


def _refuse_two(row: Any) -> Any:
    if row.n == 2:
        raise ValueError("two is none of mine")
    return row


def _refuse_any_two(columns: dict[str, Any]) -> dict[str, Any]:
    if (columns["n"] == 2).any():
        raise ValueError("two is none of mine")
    return columns


def _lose_twos(columns: dict[str, Any]) -> dict[str, Any]:
    kept = columns["n"] != 2
    return {name: column[kept] for name, column in columns.items()}


def _same(pipeline: rp.Pipeline) -> rp.Schema:
    return rp.Schema("same", pipeline.fields)


# Steps on results, under a name, that fail now and then, by a row's own values.
FAILING: dict[str, Callable[[rp.Pipeline, str], rp.Pipeline]] = {
    "nothing": lambda p, _: p,
    "divide": lambda p, name: p.derive(name, q=rp.col("n") // (rp.col("n") - 2)),
    "overflow": lambda p, name: p.derive(name, q=rp.col("volume") + (2**63 - 4)),
    "choose": lambda p, name: p.filter(name, rp.col("volume") % (rp.col("n") - 2) < 1),
    "map rows": lambda p, name: p.map(name, _refuse_two, into=_same(p)),
    "map batches": lambda p, name: p.map(name, _refuse_any_two, into=_same(p), batch=True),
    "map too few": lambda p, name: p.map(name, _lose_twos, into=_same(p), batch=True),
    "map none": lambda p, name: p.filter(f"odd-{name}", rp.col("n") % 2 == 1).map(
        name, lambda d: d if len(d["n"]) else None, into=_same(p), batch=True
    ),
}


def _no_two(state: int, value: int) -> int:
    if value == 2:
        raise ValueError("two is none of mine")
    return state + value


def _no_six(state: int) -> int:
    if state % 6 == 0:
        raise ValueError("six is none of mine")
    return state


picky = ra.custom(
    "n",
    init=lambda: 0,
    add=_no_two,
    remove=lambda state, value: state - value,
    merge=lambda one, other: one + other,
    result=_no_six,
    type=int,
    name="picky",
)
# What a second fold cannot take in, for some rows, or cannot show, for some groups.
UNFOLDABLE = {
    "nothing": ra.count(),
    "divide": ra.sum(rp.col("n") // (rp.col("n") - 2)),
    "overflow": ra.max(rp.col("volume") * 4),
    "wide": ra.sum("volume"),
    "picky": picky,
}


@some_shapes
@settings(max_examples=FEW)
@given(
    events=ticks(broken=False, max_size=30, sizes=HUGE_SIZES),
    first=st.sampled_from([*FAILING]),
    second=st.sampled_from([*FAILING]),
    over=st.sampled_from([*UNFOLDABLE]),
    group=st.sampled_from(["", "window_start_ns", "odd"]),
    restart=st.integers(1, 30),
)
def test_rows_that_cannot_be_computed_are_absent_until_they_can(
    *,
    assigner: Assigner | None,
    trigger: Trigger | None,
    events: list[Any],
    first: str,
    second: str,
    over: str,
    group: str,
    restart: int,
) -> None:
    if group == "window_start_ns" and (assigner is None or isinstance(assigner, Session)):
        group = "odd"
    results = {"n": ra.count(), "volume": ra.sum("size"), "odd": ra.count("venue")}
    sums = {"n": ra.count(), "volume": ra.sum("odd"), "over": UNFOLDABLE[over]}
    below = FAILING[first](keyed(assigner, trigger).fold("below", **results), "first")
    above = below.partition("again", key=group or ()).fold("above", **sums)
    pipeline = (
        FAILING[second](above, "second")
        .partition("once-more", key="n")
        .fold("third", groups=ra.count(), sum=ra.sum("over"))
        .sink("rows", of="below")
        .sink("groups", of="above")
        .sink("last")
    )
    check_pipeline(pipeline, events, restarts=[min(restart, len(events))])

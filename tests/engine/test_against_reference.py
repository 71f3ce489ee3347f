"""The engine against the interpreter that takes one event at a time and keeps nothing."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ripple.aggregate as ra
from ripple.testing import Marker, check_pipeline
from ripple.window import Assigner, Session, Trigger
from tests.engine.ticks import (
    AGGREGATES,
    ASSIGNERS,
    EXAMPLES,
    TOTALS,
    TRIGGERS,
    CheckedTick,
    keyed,
    ticks,
)

SHAPES = [(None, None), *itertools.product(ASSIGNERS, TRIGGERS)]
IDS = ["running" if a is None else f"{type(a).__name__}-{type(t).__name__}" for a, t in SHAPES]
each_shape = pytest.mark.parametrize(("assigner", "trigger"), SHAPES, ids=IDS)


@each_shape
@settings(max_examples=8 * EXAMPLES)
@given(events=ticks(max_size=30), restart=st.integers(1, 30))
def test_every_aggregate_equals_its_evaluation_from_scratch(
    assigner: Assigner | None, trigger: Trigger | None, events: list[Any], restart: int
) -> None:
    pipeline = keyed(assigner, trigger).fold("every", **AGGREGATES).sink("out")
    check_pipeline(pipeline, events, restarts=[restart])


@each_shape
@settings(max_examples=15 * EXAMPLES)
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
    check_pipeline(pipeline, happenings, restarts=[restart])


@each_shape
@settings(max_examples=15 * EXAMPLES)
@given(events=ticks(extreme=True), ahead=st.sampled_from([0, 50, 100]), restart=st.integers(1, 45))
def test_what_is_not_believed_is_refused_and_moves_nothing(
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
    check_pipeline(pipeline, events, restarts=[restart])

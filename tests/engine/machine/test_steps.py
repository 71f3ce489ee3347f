"""Filters, derived fields and functions before and after folds, against the reference."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ripple.model.aggregate as ra
from ripple.model.expression import col, when
from ripple.model.pipeline.builder import Pipeline
from ripple.model.schema.types import Field, Float, Int64, Option, Schema, String
from ripple.model.window import OnCount, OnInterval, Session, Sliding, Tumbling
from ripple.testing import check_pipeline
from tests.engine.machine.ticks import Tick, keyed, ticks
from tests.examples import FEW

SIZED = Schema(
    "sized",
    (
        Field("symbol", String()),
        Field("price", Option(Float())),
        Field("size", Int64()),
        Field("late", Int64()),
    ),
)


@dataclass
class Sized:
    symbol: str
    price: float | None
    size: int
    late: int


def by_row(tick: Any) -> Any:
    """Refuses what has a price of 2.5, and gives a float where an int is declared at 7."""
    if tick.price == 2.5:
        raise LookupError("2.5")
    size: Any = float(tick.size) if tick.size == 7 else tick.size * 3
    return Sized(tick.symbol + "*", tick.price, size, tick.timestamp_ns % 2)


def by_batch(columns: dict[str, Any]) -> dict[str, Any]:
    return {
        "symbol": np.char.add(columns["symbol"].astype(str), "+"),
        "price": columns["price"],
        "size": columns["size"] * 2,
        "late": columns["timestamp_ns"] % 3,
    }


BEFORE = {
    "filter": lambda p: p.filter("some", (col("size") > 1) & (col("price") < 1e18)),
    "derive": lambda p: p.derive(
        "more", inverse=100 // col("size"), scaled=col("price") * 0.1
    ).filter("scaled", col("scaled").is_finite() | col("scaled").is_null()),
    "row": lambda p: p.map("by-row", by_row, into=SIZED),
    "batch": lambda p: p.filter("first", col("size") != 3).map(
        "by-batch", by_batch, into=SIZED, batch=True
    ),
}


def _folded(pipeline: Pipeline) -> Pipeline:
    return pipeline.fold(
        "f",
        n=ra.count(),
        total=ra.sum("price"),
        volume=ra.sum("size"),
        last=ra.last("size"),
        squares=ra.sum(col("size") * col("size") * 1_000_000_000),
    )


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize(
    ("assigner", "trigger"),
    [
        (None, None),
        (Tumbling(50), None),
        (Tumbling(50), OnInterval(35)),
        (Sliding(60, 25), OnCount(2)),
        (Session(30), OnInterval(20)),
    ],
    ids=["running", "tumbling", "interval", "sliding-count", "session-interval"],
)
@settings(max_examples=FEW)
@given(events=ticks(), restart=st.integers(1, 45))
def test_steps_on_events_pass_refuse_and_drop_as_the_reference(
    *, before: str, assigner: Any, trigger: Any, events: list[Any], restart: int
) -> None:
    pipeline = _folded(keyed(assigner, trigger, before=BEFORE[before])).sink("out")
    check_pipeline(pipeline, events, restarts=[min(restart, len(events))])


WINDOWED = Schema(
    "result",
    (
        Field("symbol", String()),
        Field("window_start_ns", Int64()),
        Field("window_end_ns", Int64()),
        Field("n", Int64()),
        Field("label", String()),
    ),
)


@dataclass
class Result:
    """As WINDOWED, with a wrong key and wrong bounds."""

    n: int
    label: str
    symbol: str = "?"
    window_start_ns: int = -1
    window_end_ns: int = -1


def relabelled(row: Any) -> Result:
    return Result(row.n + 1, f"{row.symbol}{row.n % 2}")


def relabelled_batch(columns: dict[str, Any]) -> dict[str, Any]:
    n = columns["n"]
    labels = np.array([f"b{value % 2}" for value in n.tolist()], object)
    wrong = {"window_start_ns": n * 0, "window_end_ns": n * 0, "symbol": labels}
    return {**wrong, "n": n + 1, "label": labels}


AFTER = {
    "filter": lambda p: p.filter("odd", col("n") % 2 == 1).derive("label", label=col("symbol")),
    "derive": lambda p: p.derive(
        "label", label=when(col("n") > 2).then("many").otherwise(col("symbol"))
    ).derive("length", length=col("window_end_ns") - col("window_start_ns")),
    "row": lambda p: p.map("by-row", relabelled, into=WINDOWED),
    "batch": lambda p: p.map("by-batch", relabelled_batch, into=WINDOWED, batch=True),
}


@pytest.mark.parametrize("after", AFTER)
@pytest.mark.parametrize(
    ("assigner", "trigger"),
    [(Tumbling(50), None), (Sliding(60, 25), OnCount(2)), (Session(30), None)],
    ids=["tumbling", "sliding-count", "session"],
)
@settings(max_examples=FEW)
@given(events=ticks(), restart=st.integers(1, 45))
def test_steps_on_results_move_rows_between_the_groups_above(
    *, after: str, assigner: Any, trigger: Any, events: list[Any], restart: int
) -> None:
    pipeline = AFTER[after](keyed(assigner, trigger).fold("f", n=ra.count()))
    pipeline = pipeline.partition("by-label", key="label").fold("g", n=ra.sum("n"), m=ra.count())
    pipeline = pipeline.filter("few", col("n") < 9).sink("rows", of="f").sink("groups", of="g")
    check_pipeline(pipeline, events, restarts=[min(restart, len(events))])


def test_function_on_results_cannot_change_the_key_or_the_window() -> None:
    tick = {"symbol": "A", "price": None, "size": 1, "venue": None}
    events = [{**tick, "timestamp_ns": time_ns} for time_ns in (0, 100)]
    for name in ("row", "batch"):
        pipeline = AFTER[name](keyed(Tumbling(50)).fold("f", n=ra.count()))
        pipeline = pipeline.derive("span", start=col("window_start_ns"), end=col("window_end_ns"))
        check_pipeline(pipeline.sink("out"), events)


def test_second_fold_over_several_fields_and_texts() -> None:
    pipeline = (
        Pipeline("p")
        .source("ticks", Tick)
        .derive("keys", venue_name=col("venue").fill_null("-"), big=col("size") > 2)
        .partition("by", key=("venue_name", "symbol", "big"))
        .fold("f", n=ra.count(), low=ra.min("size"))
        .partition("again", key=("big", "venue_name"))
        .fold("g", n=ra.sum("n"), low=ra.min("low"), names=ra.count_distinct("symbol"))
        .sink("out")
    )
    events = [
        {"symbol": s, "price": 1.0, "size": z, "venue": v, "timestamp_ns": 0}
        for s, z, v in [("A", 1, "X"), ("B", 3, None), ("A", 4, "X"), ("C", 3, None), ("A", 1, "X")]
    ]
    check_pipeline(pipeline, events, batch_sizes=(1, 2, 5))

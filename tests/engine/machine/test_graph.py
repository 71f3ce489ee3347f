"""Plans with branches against the reference: at every batch size, with restores in between."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ripple as rp
import ripple.model.aggregate as ra
from ripple.engine.machine import Engine
from ripple.engine.machine.graph_engine import GraphEngine
from ripple.model.pipeline.builder import Pipeline
from ripple.model.pipeline.nodes import FLAT_ROWS_MAX
from ripple.model.schema.columns import records_of
from ripple.testing import check_pipeline
from tests.engine.machine.ticks import AGGREGATES, ASSIGNERS, TRIGGERS, Tick, of_two_inputs, ticks
from tests.examples import EXAMPLES, SAMPLED

SIZES = (1, 7, 1000)


@rp.record
class Leg:
    symbol: str
    price: float | None
    leg: int
    timestamp_ns: rp.Timestamp


def legs(tick: Any) -> Iterator[Leg]:
    """Make no leg of one size, as many as the size says of others, and fail for a few."""
    if tick.size == -2:
        raise ValueError("a size below zero")
    for leg in range(tick.size):
        yield Leg(tick.symbol, tick.price, leg, tick.timestamp_ns)


def again(leg: Any) -> list[dict[str, Any]]:
    rows = [{**vars(leg), "leg": leg.leg + number * 10} for number in range(leg.leg % 3)]
    if leg.leg == 5 and leg.symbol == "C":
        rows[-1]["leg"] = None
    return rows


def events() -> Pipeline:
    return Pipeline("test").source("ticks", Tick, out_of_order=10, reject_future=100_000)


# Ways from the events to sinks; each has names of its own, so that any of them go together.
def shown_as_they_come(start: Pipeline) -> Pipeline:
    return start.sink("all")


def derived_and_shown(start: Pipeline) -> Pipeline:
    dear = start.derive("d1", twice=rp.col("size") * 2, half=rp.col("price") / rp.col("size"))
    return dear.sink("tapped").filter("f1", rp.col("twice") > 2).sink("dear")


def strict(start: Pipeline) -> Pipeline:
    """Refuse records that other branches would take."""
    return start.derive("d2", part=10 // (rp.col("size") - 3)).sink("parts")


def running(start: Pipeline) -> Pipeline:
    names = ("n", "total", "vwap", "opened", "closed", "newest", "dearest", "ranked")
    some = {name: AGGREGATES[name] for name in names}
    return start.partition("p3", key="symbol").fold("running", **some).sink("r")


def windowed(start: Pipeline) -> Pipeline:
    kept = start.filter("f4", rp.col("size") != 7).partition("p4", key="symbol")
    fold = kept.window("w4", rp.Tumbling(50), lateness=20).fold("w", n=ra.count(), t=ra.sum("size"))
    over = fold.partition("by-window", key="window_start_ns").fold("over", all=ra.sum("n"))
    return fold.sink("w-out").also(over.sink("over-out"))


def late(start: Pipeline) -> Pipeline:
    keyed = start.partition("p5", key="venue_or").window("w5", rp.Sliding(60, 25), lateness=200)
    return keyed.fold("late", n=ra.count(), low=ra.min("price")).sink("late-out")


def sessions(start: Pipeline) -> Pipeline:
    keyed = start.partition("p6", key="symbol").window("w6", rp.Session(30), lateness=0)
    return keyed.fold("s", n=ra.count(), last=ra.last("size")).sink("s-out")


def multiplied(start: Pipeline) -> Pipeline:
    made = start.flat_map("legs", legs, into=Leg)
    fold = made.partition("p7", key="symbol").fold(
        "l", n=ra.count(), last=ra.last("leg"), first=ra.first("leg"), sum=ra.sum("leg")
    )
    return made.sink("legs-out").also(fold.sink("l-out")).also(twice(made))


def twice(made: Pipeline) -> Pipeline:
    more = made.flat_map("again", again, into=Leg).partition("p8", key="leg")
    return (
        more.window("w8", rp.Tumbling(100))
        .fold("m", n=ra.count(), last=ra.last("leg"))
        .sink("m-out")
    )


WAYS = [
    *(shown_as_they_come, derived_and_shown, strict, running),
    *(windowed, late, sessions, multiplied),
]


def pipeline_of(ways: list[Any]) -> Pipeline:
    start = events().derive("d0", venue_or=rp.col("venue").fill_null("none"))
    first, *rest = (way(start) for way in ways)
    for branch in rest:
        first = first.also(branch)
    return first


chosen = st.lists(st.sampled_from(WAYS), min_size=1, unique=True)


@settings(max_examples=20 * EXAMPLES // SAMPLED)
@given(ways=chosen, happened=ticks(extreme=True), restart=st.integers(0, 45))
def test_branches_equal_their_evaluation_from_scratch(
    ways: list[Any], happened: list[Any], restart: int
) -> None:
    check_pipeline(pipeline_of(ways), happened, SIZES, restarts=[min(restart, len(happened))])


@settings(max_examples=8 * EXAMPLES // SAMPLED)
@given(
    ways=chosen,
    happened=of_two_inputs(),
    restart=st.integers(0, 30),
)
def test_branches_of_several_inputs_with_markers(
    ways: list[Any], happened: tuple[list[Any], int], restart: int
) -> None:
    mixed, _ = happened
    check_pipeline(
        pipeline_of(ways),
        mixed,
        SIZES,
        inputs=["a", "b"],
        restarts=[min(restart, len(mixed))],
    )


@pytest.mark.parametrize("trigger", TRIGGERS)
@settings(max_examples=4 * EXAMPLES)
@given(happened=ticks(extreme=True), restart=st.integers(0, 45))
def test_each_trigger_beside_a_sink_of_events(
    trigger: Any, happened: list[Any], restart: int
) -> None:
    start = events()
    branch = start.sink("all")
    for at, assigner in enumerate(ASSIGNERS):
        keyed = start.partition(f"p{at}", key="symbol")
        window = keyed.window(f"w{at}", assigner, trigger=trigger, lateness=10 * at)
        branch = branch.also(window.fold(f"f{at}", n=ra.count(), t=ra.sum("size")).sink(f"o{at}"))
    check_pipeline(branch, happened, SIZES, restarts=[min(restart, len(happened))])


@settings(max_examples=25 * EXAMPLES // SAMPLED)
@given(happened=ticks(extreme=True, broken=False))
def test_a_fold_in_a_branch_has_the_rows_that_it_has_in_a_chain(happened: list[Any]) -> None:
    """Where no record is refused, what other branches do is of no matter to a fold."""
    start = events()
    keyed = start.partition("p", key="symbol").window("w", rp.Tumbling(50), lateness=20)
    chain = keyed.fold("f", n=ra.count(), t=ra.sum("size")).sink("o")
    engines = [Engine(chain.plan()), Engine(chain.also(start.sink("all")).plan())]
    for engine in engines:
        engine.apply("ticks", records_of(happened, engine.plan.source.fields), len(happened))
        engine.stabilize()

    one, other = engines
    assert type(one) is Engine
    assert type(other) is GraphEngine
    assert one.digests["o"] == other.digests["o"]
    assert one.watermark_ns == other.watermark_ns


def test_a_chain_has_the_engine_that_it_had() -> None:
    plan = running(events()).plan()

    assert plan.is_chain
    assert type(Engine(plan)) is Engine


def test_rows_of_a_stream_are_each_shown_once_and_keep_no_state() -> None:
    engine = Engine(shown_as_they_come(events()).plan())
    rows = [
        {"symbol": "A", "price": None, "size": at, "venue": "X", "timestamp_ns": at}
        for at in range(5)
    ]
    engine.apply("ticks", records_of(rows[:3], engine.plan.source.fields), 3)
    first = engine.stabilize().outputs["all"].to_pylist()
    engine = Engine.restore(engine.plan, engine.snapshot())
    engine.apply("ticks", records_of(rows[3:], engine.plan.source.fields), 5)
    second = engine.stabilize().outputs["all"].to_pylist()

    assert [*first, *second] == rows
    assert engine.stabilize().outputs["all"].num_rows == 0
    assert engine.snapshot().tables == {}
    assert engine.table("all").num_rows == 0
    assert engine.live_digests == {"all": "0" * 16}


def test_a_record_with_too_many_rows_is_refused_as_a_whole() -> None:
    def many(tick: Any) -> Any:
        return ({**vars(tick), "size": at} for at in range(tick.size))

    plan = events().flat_map("many", many, into=Tick).sink("all").plan()
    rows = [
        {"symbol": "A", "price": 1.0, "size": size, "venue": None, "timestamp_ns": 1}
        for size in (2, FLAT_ROWS_MAX, FLAT_ROWS_MAX + 1)
    ]
    engine = Engine(plan)
    refused = engine.apply("ticks", records_of(rows, plan.source.fields), 3)

    assert [(bad.row, bad.step) for bad in refused] == [(2, "many")]
    assert engine.stabilize().outputs["all"].num_rows == 2 + FLAT_ROWS_MAX


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (None, "must return a list of rows, or yield them, not None"),
        (7, "must return a list of rows, or yield them, not int"),
        ("ab", "must return a list of rows, or yield them, not str"),
        ({"symbol": "A"}, "must return a list of rows, or yield them, not dict"),
        ([{"symbol": "A"}], "returned a dict without 'price'"),
    ],
)
def test_a_function_that_makes_no_rows_is_told_what_to_return(made: Any, reason: str) -> None:
    plan = events().flat_map("many", lambda _: made, into=Tick).sink("all").plan()
    rows = [
        {"symbol": "A", "price": 1.0 + at, "size": at, "venue": None, "timestamp_ns": 1}
        for at in range(2)
    ]
    refused = Engine(plan).apply("ticks", records_of(rows, plan.source.fields), 2)

    assert [bad.row for bad in refused] == [0, 1]
    assert {bad.reason for bad in refused} == {f"TypeError: the function {reason}"}


def test_a_refused_record_counts_in_no_branch() -> None:
    start = events()
    engine = Engine(strict(start).also(running(start)).also(start.sink("all")).plan())
    rows = [
        {"symbol": "A", "price": 1.0, "size": size, "venue": None, "timestamp_ns": size}
        for size in (1, 3, 5)
    ]
    refused = engine.apply("ticks", records_of(rows, engine.plan.source.fields), 3)
    outputs = engine.stabilize().outputs

    assert [(bad.row, bad.step) for bad in refused] == [(1, "d2")]
    assert outputs["all"].column("size").to_pylist() == [1, 5]
    assert outputs["r"].column("n").to_pylist() == [2]
    counters = engine.counters
    assert (counters.applied, counters.dead_lettered, counters.consumed) == (2, 1, 3)


def test_rows_between_two_cuts_stand_in_one_order_however_inputs_interleave() -> None:
    """A sink with a prefix of them then continues with the others."""
    plan = events().sink("all", key="symbol").plan()
    assert plan.topology_hash != events().sink("all").plan().topology_hash

    def batch(first: int) -> Any:
        rows = [
            {"symbol": "S", "price": 1.0, "size": at, "venue": None, "timestamp_ns": at}
            for at in range(first, first + 2)
        ]
        return records_of(rows, plan.source.fields)

    found = []
    for order in ([("b", 2), ("a", 2), ("b", 4)], [("a", 2), ("b", 2), ("b", 4)]):
        engine = Engine(plan, inputs=["a", "b"])
        for name, end in order:
            engine.apply(name, batch(end - 2 if name == "a" else 10 + end), end)
        found.append(engine.stabilize().outputs["all"].to_pylist())
    assert found[0] == found[1]
    assert [row["size"] for row in found[0]] == [0, 1, 12, 13, 14, 15]

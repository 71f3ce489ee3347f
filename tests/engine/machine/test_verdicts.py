"""Tables of late events' verdicts, and of when windows fire and correct themselves."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import ripple.model.aggregate as ra
from ripple.engine.machine import OP_REMOVE, Engine
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.model.expression import col
from ripple.model.pipeline.builder import Pipeline
from ripple.model.window import OnCount, OnInterval, Session, Sliding, Tumbling
from ripple.testing import Emit, Marker, Reference, Retract, check_pipeline
from tests.engine.machine.ticks import Tick, keyed


def _tick(time_ns: int, symbol: str = "A", size: int = 1) -> dict[str, Any]:
    return {
        "symbol": symbol,
        "price": float(size),
        "size": size,
        "venue": None,
        "timestamp_ns": time_ns,
    }


def _windows(lateness: int, future: int, size: int = 100) -> Pipeline:
    return (
        Pipeline("book")
        .source("ticks", Tick, out_of_order=0)
        .partition("by-symbol", key="symbol")
        .window("w", Tumbling(size), lateness=lateness, future=future)
        .fold("f", n=ra.count(), volume=ra.sum("size"))
        .sink("out")
    )


VERDICTS = {
    200: "on time",  # at the watermark
    195: "mildly_late",
    140: "mildly_late",  # exactly lateness behind
    139: "very_late",
    130: "very_late",
    260: "on time",  # exactly the tolerance ahead
    261: "future",
    280: "future",
}


@pytest.mark.parametrize(("time_ns", "verdict"), VERDICTS.items())
def test_verdict_at_watermark_200_with_lateness_60_is_the_books(time_ns: int, verdict: str) -> None:
    pipeline = _windows(lateness=60, future=60)
    check_pipeline(pipeline, [_tick(200), _tick(time_ns)])
    engine = Engine(pipeline.plan())
    reference = Reference(pipeline.plan())
    for event in (_tick(200), _tick(time_ns)):
        reference.apply(event)
        batch = _batch(engine, [event])
        engine.apply("ticks", batch, engine.cut["ticks"] + 1)
    wanted = dict.fromkeys(("mildly_late", "very_late", "future"), 0)
    if verdict != "on time":
        wanted[verdict] = 1
    counts = engine.counters.as_dict()
    assert {name: counts[name] for name in wanted} == wanted
    assert counts["applied"] == 2 - wanted["very_late"]
    assert counts["consumed"] == 2
    assert reference.counts == counts


def _batch(engine: Engine, events: list[dict[str, Any]]) -> Any:
    return pa.RecordBatch.from_pylist(
        events, schema=pa.schema(arrow_fields(engine.plan.source.fields))
    )


def test_event_is_judged_by_the_watermark_before_it_not_by_its_own() -> None:
    engine = Engine(_windows(lateness=0, future=60).plan())
    # Each is ahead of the watermark that it makes itself only if it counts before it is judged.
    engine.apply("ticks", _batch(engine, [_tick(0), _tick(100), _tick(99), _tick(161)]), 4)
    counts = engine.counters.as_dict()
    assert (counts["future"], counts["very_late"]) == (2, 1)


def test_window_fires_when_the_slowest_of_the_sources_has_passed_it() -> None:
    plan = _windows(lateness=0, future=1000).plan()
    engine = Engine(plan, inputs=["a", "b"])
    reference = Reference(plan, inputs=["a", "b"])
    fired = []
    steps = [("a", 100), ("b", 50), ("b", 100), ("a", 200), ("b", 150), ("b", 200)]
    for source, watermark_ns in [("a", 10), *steps]:
        if watermark_ns == 10:  # an event for window [0, 100), and one for [100, 200)
            engine.apply("a", _batch(engine, [_tick(10)]), 1)
            reference.apply(_tick(10), "a")
        if (source, watermark_ns) == ("a", 200):
            engine.apply("a", _batch(engine, [_tick(120)]), 2)
            reference.apply(_tick(120), "a")
        engine.advance(source, watermark_ns, engine.cut[source])
        reference.advance(source, watermark_ns)
        changes = engine.stabilize()
        rows = changes.outputs["out"].to_pylist()
        fired.append([row["window_start_ns"] for row in rows])
        emitted = reference.emissions()
        assert [emit.row["window_start_ns"] for emit in emitted] == fired[-1]
        assert reference.watermark_ns in (None, changes.watermark_ns)
    assert fired == [[], [], [], [0], [], [], [100]]


def test_source_going_back_leaves_the_watermark() -> None:
    engine = Engine(_windows(lateness=0, future=60).plan())
    engine.advance("ticks", 100, 0)
    engine.advance("ticks", 50, 0)
    assert engine.watermark_ns == 100


def test_late_event_retracts_the_result_and_emits_the_corrected_one() -> None:
    plan = _windows(lateness=60, future=1000).plan()
    reference, engine = Reference(plan), Engine(plan)
    table: dict[Any, Any] = {}
    story = []
    for event in [_tick(10, size=2), _tick(100), _tick(90, size=5), _tick(160), _tick(99)]:
        reference.apply(event)
        story.append(reference.emissions())
        engine.apply("ticks", _batch(engine, [event]), engine.cut["ticks"] + 1)
        assert _as_emissions(engine, table) == story[-1]
    key = ("A", 0)
    first = {"symbol": "A", "window_start_ns": 0, "window_end_ns": 100, "n": 1, "volume": 2}
    second = {**first, "n": 2, "volume": 7}
    assert story == [
        [],
        [Emit("out", key, first)],
        [Retract("out", key, first), Emit("out", key, second)],
        [],  # the watermark is 160: the window is final
        [],  # and 99 is very late
    ]
    assert engine.table("out").num_rows == 0


def _as_emissions(engine: Engine, table: dict[Any, Any]) -> list[Any]:
    """Return what one stabilize means to a reader that retracts before it corrects."""
    emitted: list[Any] = []
    for row in engine.stabilize().outputs["out"].to_pylist():
        key = (row["symbol"], row["window_start_ns"])
        op = row.pop("op")
        if key in table:
            emitted.append(Retract("out", key, table.pop(key)))
        if op != OP_REMOVE:
            table[key] = row
            emitted.append(Emit("out", key, row))
    return emitted


def test_session_that_grows_beyond_the_watermark_is_withdrawn_until_it_ends_again() -> None:
    pipeline = keyed(Session(30), lateness=60, out_of_order=0).fold("f", n=ra.count()).sink("out")
    reference = Reference(pipeline.plan())
    story = []
    for time_ns in (0, 10, 45, 38, 70):
        reference.apply(_tick(time_ns))
        story.append([(type(e).__name__, e.key[1], e.row["n"]) for e in reference.emissions()])
    # 45 ends the session of 0 and 10; 38 joins it with that of 45.
    assert story == [[], [], [("Emit", 0, 2)], [("Retract", 0, 2)], []]
    check_pipeline(pipeline, [_tick(t) for t in (0, 10, 45, 38, 70, 101, 200)])


def test_idle_source_is_passed_by_a_marker() -> None:
    pipeline = _windows(lateness=10, future=1000)
    events = [("a", _tick(10)), ("a", _tick(250)), ("b", _tick(20))]
    markers = [Marker("b", 90), Marker("b", 100), ("a", _tick(260)), Marker("b", 400)]
    check_pipeline(pipeline, [*events, *markers], inputs=["a", "b"])
    engine = Engine(pipeline.plan(), inputs=["a", "b"])
    engine.apply("a", _batch(engine, [_tick(10), _tick(250)]), 2)
    assert engine.stabilize().outputs["out"].num_rows == 0
    engine.advance("b", 100, 1)
    assert engine.stabilize().outputs["out"].num_rows == 1
    assert engine.cut == {"a": 2, "b": 1}


def test_running_folds_take_events_however_late() -> None:
    pipeline = keyed().fold("f", n=ra.count(), last=ra.last("size")).sink("out")
    times = [0, 2**62 - 1, -(2**62), 5]
    check_pipeline(pipeline, [*map(_tick, times), Marker("ticks", 2**63 - 1), *map(_tick, times)])


def test_event_beyond_the_future_is_flagged_however_far() -> None:
    pipeline = keyed(Tumbling(50), out_of_order=2**60).fold("f", n=ra.count()).sink("out")
    check_pipeline(pipeline, [_tick(-(2**62)), _tick(2**62 - 1), _tick(3)])


@pytest.mark.parametrize("assigner", [Tumbling(50), Sliding(60, 25), Session(30)])
def test_event_that_a_filter_drops_still_moves_the_watermark_and_the_interval(
    assigner: Any,
) -> None:
    pipeline = keyed(
        assigner, OnInterval(35), before=lambda p: p.filter("positive", col("size") > 0)
    ).fold("f", n=ra.count())
    check_pipeline(
        pipeline.sink("out"), [_tick(3), _tick(12), _tick(60, size=0), _tick(61), _tick(99, size=0)]
    )


def test_session_that_joins_another_counts_the_elements_of_both() -> None:
    pipeline = keyed(Session(10), OnCount(3)).fold("f", n=ra.count()).sink("out")
    check_pipeline(pipeline, [_tick(t) for t in (0, 1, 15, 16, 8, 17, 9)])


def _believing(ahead: int | str | None, window: bool = True) -> Pipeline:
    line = Pipeline("wary").source("ticks", Tick, reject_future=ahead)
    line = line.partition("by-symbol", key="symbol")
    line = line.window("w", Tumbling(100), lateness=0, future=60) if window else line
    return line.fold("f", n=ra.count(), last=ra.last("size")).sink("out")


def test_one_event_far_in_the_future_does_not_make_those_after_it_late() -> None:
    events = [_tick(0), _tick(2**61), _tick(10), _tick(500), _tick(20)]
    for ahead, very_late in ((None, 3), (500, 1)):
        pipeline = _believing(ahead)
        check_pipeline(pipeline, events, restarts=[2])
        engine = Engine(pipeline.plan())
        refused = engine.apply("ticks", _batch(engine, events), len(events))
        assert engine.counters.very_late == very_late
        assert [(bad.row, bad.step) for bad in refused] == ([] if ahead is None else [(1, "ticks")])
        assert engine.watermark_ns == (2**61 if ahead is None else 500)
        engine.check_invariants()
    assert refused[0].reason == "the event time 'timestamp_ns' is too far ahead"
    assert engine.counters.as_dict() == {
        "consumed": 5,
        "applied": 3,
        "mildly_late": 0,
        "very_late": 1,
        "future": 1,  # refused events are not among them
        "dead_lettered": 1,
    }


def test_event_too_far_ahead_is_reported_without_windows_and_by_the_watermark_before_it() -> None:
    check_pipeline(_believing(500, window=False), [_tick(0), _tick(501), _tick(500), _tick(1000)])
    engine = Engine(_believing("500ns", window=False).plan())
    events = [_tick(0), _tick(501), _tick(500), _tick(1000), _tick(1501)]
    refused = engine.apply("ticks", _batch(engine, events), len(events))
    assert [bad.row for bad in refused] == [1, 4]


def test_refused_event_does_not_count_as_crossing_an_interval() -> None:
    line = Pipeline("wary").source("ticks", Tick, reject_future=50)
    line = line.partition("by-symbol", key="symbol")
    line = line.window("w", Tumbling(1000), trigger=OnInterval(100))
    pipeline = line.fold("f", n=ra.count()).sink("out")
    check_pipeline(pipeline, [_tick(at) for at in (0, 40, 190, 90, 101, 250, 140, 205)])


def test_marker_lets_events_after_a_long_pause_in_again() -> None:
    events = [_tick(0), _tick(1000), Marker("ticks", 900), _tick(1000)]
    check_pipeline(_believing(500), events)
    engine = Engine(_believing(500).plan())
    for offset in (1, 2):
        engine.apply("ticks", _batch(engine, [_tick(1000 * (offset - 1))]), offset)
    engine.advance("ticks", 900, 2)
    assert engine.apply("ticks", _batch(engine, [_tick(1000)]), 3) == []
    assert engine.counters.dead_lettered == 1

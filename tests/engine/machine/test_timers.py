"""Timers of a scan: against the reference, and their rules one by one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ripple as rp
from ripple.core.errors import PlanError
from ripple.core.row_ops import OP, OP_REMOVE
from ripple.engine.machine import Engine
from ripple.engine.machine.inspection import inspected
from ripple.model.pipeline.builder import Pipeline
from ripple.model.schema.columns import records_of
from ripple.testing import check_pipeline, crash_test
from tests.engine.machine.finals import bars
from tests.engine.machine.interleaved import read_mixed
from tests.engine.machine.stream_ways import ended, shown
from tests.engine.machine.test_scan import FIELDS, SIZES, WAYS, rows_of, start
from tests.engine.machine.ticks import Tick, of_two_inputs, ticks
from tests.examples import EXAMPLES, SAMPLED, SCATTERED, THINNED


@dataclass
class Silence:
    """The state of a symbol, with two timers."""

    count: int = 0
    calls: int = 0
    silent: rp.Timestamp | None = None
    beats: rp.Timestamp | None = None


@dataclass
class Called:
    """A row of a tick, or of a timer."""

    what: str
    at: int
    number: int
    size: int
    venues: str = ""


def tick(state: Silence, row: Tick) -> Called | None:
    """Set timers, some of them in the past, and fail for some rows."""
    state.count += 1
    state.silent = row.timestamp_ns + 5 * row.size
    if row.size == 7:
        state.silent = 2**62
    if row.size == 1:
        state.beats = row.timestamp_ns + 30
    if row.size == -2:
        state.beats = None
    return None if row.size == 3 else Called("tick", row.timestamp_ns, state.count, row.size)


def silent(state: Silence, at: int) -> Called | None:
    state.calls += 1
    if state.calls % 5 == 0:
        raise ValueError("it fails")
    if state.calls % 3 == 0:
        state.beats = at
        return None
    return Called("silent", at, state.count, state.silent or 0)


def beat(state: Silence, at: int) -> Called:
    state.calls += 1
    if state.calls % 4:
        state.beats = at + 17 * (state.calls % 3)
    return Called("beat", at, state.calls, 1)


ARGUMENTS = st.fixed_dictionaries(
    {
        "ttl": st.sampled_from([None, 3, 40, 10**6]),
        "lateness": st.sampled_from([0, 20, 200]),
        "version_of": st.sampled_from([None, "venue"]),
    }
)
TIMERS = {"beats": beat, "silent": silent}


def timed(base: Pipeline, **more: Any) -> Pipeline:
    said = {"settled": True, "lateness": 20, "timers": TIMERS, "step": tick} | more
    return base.scan("scan", "symbol", state=Silence, into=Called, **said)


@settings(max_examples=12 * EXAMPLES // SAMPLED)
@given(
    ways=st.lists(st.sampled_from(WAYS), min_size=1, unique=True),
    said=ARGUMENTS,
    happened=ticks(extreme=True),
    restart=st.integers(0, 45),
)
def test_timers_equal_their_evaluation_from_scratch(
    ways: list[Any], said: Any, happened: Any, restart: int
) -> None:
    base = start()
    pipeline = ended(timed(base, **said), ways, base)
    check_pipeline(pipeline, happened, SIZES, restarts=[min(restart, len(happened))])


@settings(max_examples=6 * EXAMPLES // THINNED)
@given(ways=st.lists(st.sampled_from(WAYS), min_size=1, unique=True), happened=of_two_inputs())
def test_timers_of_several_inputs_with_markers(
    ways: list[Any], happened: tuple[list[Any], int]
) -> None:
    mixed, at = happened
    base = start()
    pipeline = ended(timed(base, ttl=70), ways, base)
    check_pipeline(pipeline, mixed, SIZES, inputs=["a", "b"], restarts=[at])


@settings(max_examples=6 * EXAMPLES // THINNED)
@given(data=st.data(), happened=ticks(), restart=st.integers(0, 45))
def test_timers_of_several_sources(data: Any, happened: Any, restart: int) -> None:
    pipeline = Pipeline("test")
    one = pipeline.source("ticks", Tick, out_of_order=10)
    other = pipeline.source("more", Tick, out_of_order=30)
    whole = timed(rp.union("both", one, other)).sink("out")
    lanes: dict[str, list[Any]] = {"ticks": [], "more": []}
    rows = [(data.draw(st.sampled_from(["ticks", "more"])), event) for event in happened]
    for source, event in rows:
        lanes[source].append(event)
    check_pipeline(whole, rows, SIZES, restarts=[min(restart, len(rows))])
    first, second = (read_mixed(whole, lanes, data.draw(st.integers())) for _ in range(2))
    assert first == second


def last_of(base: Pipeline, **more: Any) -> Pipeline:
    return timed(base, settled=False, show="last", **more)


@pytest.mark.parametrize("show", ["last", "rows"])
@settings(max_examples=9 * EXAMPLES // SAMPLED)
@given(said=ARGUMENTS, happened=ticks(extreme=True), restart=st.integers(0, 45))
def test_tables_with_timers_equal_their_evaluation_from_scratch(
    show: str, said: Any, happened: Any, restart: int
) -> None:
    base = start()
    pipeline = ended(timed(base, settled=False, show=show, **said), [shown], base)
    check_pipeline(pipeline, happened, SIZES, restarts=[min(restart, len(happened))])


@pytest.mark.parametrize("show", ["last", "rows"])
@settings(max_examples=4 * EXAMPLES // THINNED)
@given(happened=of_two_inputs())
def test_tables_with_timers_of_several_inputs_with_markers(
    show: str, happened: tuple[list[Any], int]
) -> None:
    mixed, at = happened
    base = start()
    pipeline = ended(timed(base, settled=False, show=show, ttl=70), [shown], base)
    check_pipeline(pipeline, mixed, SIZES, inputs=["a", "b"], restarts=[at])


def test_a_late_row_takes_back_the_timer_that_was_called_for_silence() -> None:
    engine = engine_of(settled=False, show="last", lateness=50)
    assert read(engine, ("A", 5, 10)) == [("A", "tick", 10)]
    # The watermark is 10 behind the newest row.
    assert read(engine, ("B", 90, 25)) == [("A", "silent", 15), ("B", "tick", 25)]
    assert read(engine, ("A", 20, 12)) == [("A", "tick", 12)]
    engine = Engine.restore(engine.plan, engine.snapshot())
    engine.stabilize()
    assert read(engine, ("B", 90, 42)) == [("A", "silent", 32), ("B", "tick", 42)]
    engine.close()
    assert given_by(engine) == [("B", "silent", 132)]


def test_a_late_row_takes_the_row_of_a_timer_out_of_the_table_of_all_rows() -> None:
    engine = engine_of(settled=False, lateness=50)
    assert changed(engine, ("A", 5, 10)) == [("+", 0, 0, "tick", 10)]
    # The watermark is 10 behind the newest row.
    silence, moved = (0, 1, "silent", 15), (2, 1, "silent", 32)
    assert changed(engine, ("B", 90, 25)) == [("+", *silence), ("+", 1, 0, "tick", 25)]
    assert changed(engine, ("A", 20, 12)) == [("+", 2, 0, "tick", 12), ("-", 0, 1)]
    engine = Engine.restore(engine.plan, engine.snapshot())
    engine.stabilize()
    assert changed(engine, ("B", 90, 42)) == [("+", *moved), ("+", 3, 0, "tick", 42)]
    # Both are final from 82 on; a restored table does not show them again.
    assert changed(engine, ("B", 90, 92)) == [("+", 4, 0, "tick", 92)]
    engine = Engine.restore(engine.plan, engine.snapshot())
    assert changed(engine) == []
    assert changed(engine, ("A", 7, 93)) == [("+", 5, 0, "tick", 93)]
    engine.close()
    assert changed(engine) == [("+", 4, 1, "silent", 182), ("+", 5, 1, "silent", 100)]


def heartbeat(state: Silence, at: int) -> Called:
    state.calls += 1
    return Called("silent", at, state.calls, 0)


def waits(state: Silence, row: Tick) -> Called:
    state.count += 1
    state.silent = row.timestamp_ns + row.size
    return Called("tick", row.timestamp_ns, state.count, row.size)


def engine_of(step: Any = waits, fire: Any = heartbeat, **more: Any) -> Engine:
    said = {"settled": True, "lateness": 0, "timers": {"silent": fire}} | more
    made = start().scan("s", "symbol", state=Silence, step=step, into=Called, **said)
    return Engine(made.sink("out").plan())


def read(engine: Engine, *rows: tuple[str, int, int]) -> list[tuple[str, str, int]]:
    engine.apply("ticks", records_of(rows_of(*rows), FIELDS), engine.cut["ticks"] + len(rows))
    return given_by(engine)


def changed(engine: Engine, *rows: tuple[str, int, int]) -> list[tuple[Any, ...]]:
    """Return the added and the removed rows of the table, by their places."""
    if rows:
        batch = records_of(rows_of(*rows), FIELDS)
        engine.apply("ticks", batch, engine.cut["ticks"] + len(rows))
    found = []
    for row in engine.stabilize().outputs["out"].to_pylist():
        place = (row["row_offset"], row["row_index"])
        is_gone = row[OP] == OP_REMOVE
        found.append(("-", *place) if is_gone else ("+", *place, row["what"], row["at"]))
    return sorted(found)


def given_by(engine: Engine) -> list[tuple[str, str, int]]:
    found = engine.stabilize().outputs["out"].to_pylist()
    return [(row["symbol"], row["what"], row["at"]) for row in found]


def closed(state: Silence, bar: Any) -> Called:
    state.count += 1
    state.silent = bar.window_end_ns + 60
    return Called("bar", bar.window_end_ns, state.count, bar.n)


def test_timers_over_final_rows_show_the_last_rows_alone() -> None:
    final = bars(start(), rp.Tumbling(50), None, 20).finals("final")
    with pytest.raises(PlanError, match=r"of 'final', not as records: .* say show='last' in place"):
        timed(final, lateness=None)
    pipeline = last_of(final, step=closed, lateness=None, ttl=150).sink("out")
    happened = rows_of(*((key, 1, at) for at in range(5, 600, 45) for key in "AB" if at % 4))
    check_pipeline(pipeline, happened, SIZES, restarts=[9])


def test_a_timer_is_called_by_the_watermark_or_before_a_later_row_and_moves_when_set_again() -> (
    None
):
    engine = engine_of()
    # The watermark is 10 behind the newest row.
    assert read(engine, ("A", 5, 10), ("A", 5, 12), ("B", 100, 26)) == [
        ("A", "tick", 10),
        ("A", "tick", 12),
    ]
    assert read(engine, ("B", 100, 27)) == [("A", "silent", 17)]
    # At its own time a row comes after it.
    assert read(engine, ("A", 5, 40), ("A", 5, 45), ("C", 1, 56)) == [
        ("B", "tick", 26),
        ("B", "tick", 27),
        ("A", "tick", 40),
        ("A", "silent", 45),
        ("A", "tick", 45),
    ]
    engine.close()
    assert given_by(engine) == [
        ("A", "silent", 50),
        ("C", "tick", 56),
        ("C", "silent", 57),
        ("B", "silent", 127),
    ]


def test_a_late_row_within_lateness_precedes_the_timer_that_it_moves() -> None:
    engine = engine_of(lateness=20)
    assert read(engine, ("A", 5, 10), ("B", 90, 44)) == [("A", "tick", 10)]
    assert read(engine, ("A", 9, 14), ("B", 90, 45)) == [("A", "tick", 14)]
    assert read(engine, ("B", 90, 53)) == [("A", "silent", 23)]


def test_a_failing_timer_is_off_leaves_the_state_and_is_named() -> None:
    def fails(state: Silence, at: int) -> None:
        state.count = 100
        raise ValueError(f"at {at}")

    engine = engine_of(fire=fails)
    read(engine, ("A", 5, 10), ("B", 9, 100), ("A", 5, 110), ("B", 9, 300))
    first, *others = engine.uncomputable["s"].rows
    assert (first.key, first.reason) == (("A", 14), "timer 'silent': ValueError: at 15")
    assert [one.key for one in others] == [("A", 114), ("B", 108)]
    (states,) = (table for name, table in engine.snapshot().tables.items() if "right" in name)
    assert states.sort_by("symbol").column("ripple.state.count").to_pylist() == [2, 1]
    assert states.column("ripple.state.silent").null_count == 2


def test_a_timer_that_sets_itself_for_ever_is_off_after_some_calls_until_the_next_row() -> None:
    def again(state: Silence, at: int) -> None:
        state.silent = at
        state.calls += 1

    engine = engine_of(fire=again)
    read(engine, ("A", 5, 10), ("B", 90, 30), ("A", 5, 60), ("B", 900, 100))
    assert [row.reason for row in engine.uncomputable["s"].rows] == [
        "timers were called 9999 times since the last row of the key: they are off"
    ] * 2
    (states,) = (table for name, table in engine.snapshot().tables.items() if "right" in name)
    assert states.sort_by("symbol").column("ripple.state.calls").to_pylist()[0] == 2 * 9999


def test_a_timer_ends_with_its_state() -> None:
    engine = engine_of(ttl=5)
    assert read(engine, ("A", 5, 10), ("A", 4, 20), ("B", 1, 100)) == [
        ("A", "tick", 10),
        ("A", "tick", 20),
        ("A", "silent", 24),
    ]


def test_timers_that_move_to_earlier_times_or_end_with_their_state_take_no_more_room() -> None:
    def sooner(state: Silence, row: Tick) -> None:
        state.count += 1
        state.silent = 10**12 - state.count

    def never(state: Silence, row: Tick) -> None:
        state.count += 1

    def size(engine: Engine, keys: int) -> int:
        for at in range(400):
            read(engine, (f"k{at % keys}", 1, 10 * at))
        (scan,) = (one for one in inspected(engine)["nodes"] if one["name"] == "s")
        return int(scan["bytes"])

    for keys, ttl in ((1, None), (400, 5)):
        timed, plain = (size(engine_of(step=step, ttl=ttl), keys) for step in (sooner, never))
        assert timed - plain <= 130 * 120


def test_rows_of_timers_are_told_apart_by_their_index_in_the_record_before() -> None:
    def twice(state: Silence, at: int) -> Called:
        state.calls += 1
        if state.calls % 2:
            state.silent = at + 1
        return Called("silent", at, state.calls, 0)

    base = start()
    said: Any = {"settled": True, "lateness": 0, "timers": {"silent": twice}}
    made = base.scan("s", "symbol", state=Silence, step=waits, into=Called, **said)
    near = made.join_asof("near", base.filter("f", rp.col("size") > 9), on="symbol", emit="eager")
    pipeline = near.sink("out")
    happened = rows_of(("A", 5, 10), ("B", 9, 12), ("A", 5, 60), ("B", 90, 90))
    check_pipeline(pipeline, happened, SIZES)
    engine = Engine(pipeline.plan())
    found = []
    for offset, event in enumerate(happened, 1):
        engine.apply("ticks", records_of([event], FIELDS), offset)
        rows = engine.stabilize().outputs["out"].to_pylist()
        found += [(row["row_offset"], row["row_index"], row["at"]) for row in rows]
    assert sorted(found) == [
        (0, 0, 10),
        (0, 1, 15),
        (0, 2, 16),
        (1, 0, 12),
        (1, 1, 21),
        (1, 2, 22),
        (2, 0, 60),
        (2, 1, 65),
        (2, 2, 66),
    ]


def rows_of_timers(base: Pipeline, **more: Any) -> Pipeline:
    return timed(base, settled=False, **more)


@pytest.mark.parametrize("way", [timed, last_of, rows_of_timers])
def test_timers_survive_a_crash_at_any_effect(way: Any) -> None:
    happened = rows_of(*((symbol, 1 + at % 3, 30 * at) for at in range(8) for symbol in "AB"))
    base = start()
    pipeline = ended(way(base, lateness=50, ttl=200), [shown], base)
    crash_test(pipeline, happened, seeds=range(1), every=SCATTERED, pairs=1)


def test_a_timer_that_cannot_be_is_refused() -> None:
    def refused(match: str, base: Any = None, **more: Any) -> None:
        with pytest.raises(PlanError, match=match):
            timed(base or start(), **more)

    refused("timers takes fields of the state", timers={})
    refused("'gone' is no field of Silence", timers={"gone": beat})
    refused("Silence.count is int, and a timer is a time", timers={"count": beat})
    refused("'beats' takes a function of the state and the time, not 3", timers={"beats": 3})
    several = start().flat_map("f", lambda row: [row], into=Tick)
    refused("'f' gives several rows of a record, .* or write its rows to a log", several)
    one = start()
    both = rp.union("u", one, one.filter("f", rp.col("size") > 1))
    refused("the streams of 'ticks' give several rows", both)
    again = timed(start()).map("m", lambda row: row, into=Tick)
    with pytest.raises(PlanError, match="'scan' gives several rows"):
        again.scan(
            "s", "symbol", state=Silence, step=tick, into=Called, settled=True, timers=TIMERS
        )
    with pytest.raises(PlanError, match="timers is given, and running values have no state"):
        start().scan("r", "symbol", settled=True, timers=TIMERS, n=rp.lag("size"))
    with pytest.raises(PlanError, match=r"timers is given, and rp\.Position takes none"):
        start().scan("r", "symbol", step=rp.Position("size", "size", method="fifo"), timers=TIMERS)

"""What is not plainly in a result is told while a life goes on, in few lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

import ripple as rp
from ripple.cli.lib.statistics import exceptions
from ripple.control.telemetry.levels import Level, level_of
from ripple.core.event_text import line_of
from ripple.engine.machine import Engine
from ripple.engine.machine.counters import Counters
from ripple.model.batch import Batch
from ripple.model.schema.types import Field, Int, Int64, Schema, String
from ripple.model.window import watermark
from ripple.task.notices import ExceptionNotices
from ripple.task.units import unit_remark

if TYPE_CHECKING:
    from ripple.core.events import Event

_TRADE = Schema("trade", (Field("symbol", String()), Field("size", Int())))
PLAN = (
    rp.Pipeline("p")
    .source("trades", _TRADE)
    .partition("by", key="symbol")
    .fold("f", n=rp.count(), s=rp.sum("size"))
    .derive("d", each=rp.col("s") // (rp.col("n") - 2))
    .sink("out")
    .plan()
)


class Reader:
    """Who reads the lines."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)

    @property
    def lines(self) -> list[str]:
        """What was said since they were read last, all at warn."""
        events, self.events = self.events, []
        assert {level_of(event)[0] for event in events} <= {Level.WARN}
        return [line_of(event) or "" for event in events]


def test_rows_that_cannot_be_computed_are_told_and_measured_while_it_goes_on() -> None:
    engine, reader = Engine(PLAN), Reader()
    noticed = ExceptionNotices(reader.emit, engine.counters)

    def take(symbols: str) -> None:
        rows = [{"symbol": symbol, "size": 1} for symbol in symbols]
        engine.apply("trades", pa.RecordBatch.from_pylist(rows), engine.cut["trades"] + len(rows))
        engine.stabilize()
        noticed.look(engine)

    take("ABC")
    assert reader.lines == []
    take("AB")
    said = "rows of 'f' that cannot be computed, and are absent: 2; the first: key ('A',), "
    (line,) = reader.lines
    assert line.startswith(f"{said}step 'd': integer division by zero")
    take("C")  # a third one is no news, twice as many are
    assert reader.lines == []
    take("DD")
    assert [line.partition("; ")[0] for line in reader.lines] == [
        "rows of 'f' that cannot be computed, and are absent: 4"
    ]
    take("A")
    assert (engine.uncomputable_counts, engine.keys_held) == ({"f": 3}, 4)
    _, fold, output = engine.inspected()["nodes"]
    assert (fold["uncomputable"], fold["keys"], output["keys"]) == (3, 4, 1)


def test_events_of_the_future_and_late_ones_are_told_of_this_life_alone() -> None:
    keyed = rp.Pipeline("p").source("trades", _TRADE, time="size").partition("p", key="symbol")
    plan = keyed.window("w", rp.Tumbling("1s")).fold("f", n=rp.count()).sink("out").plan()
    reader, engine = Reader(), Engine(plan)
    noticed = ExceptionNotices(reader.emit, Counters(future=10, very_late=20))
    for future, very_late in ((10, 20), (11, 20), (11, 22), (12, 23), (13, 24), (13, 25)):
        engine.counters.future, engine.counters.very_late = future, very_late
        noticed.look(engine)
    assert [line.partition(";")[0] for line in reader.lines] == [
        "events far ahead of their watermark: 1",
        "very late events, which are not counted in results: 2",
        "events far ahead of their watermark: 2",
        "very late events, which are not counted in results: 4",
    ]


def test_events_of_the_future_are_no_news_where_no_window_depends_on_them() -> None:
    reader, engine = Reader(), Engine(PLAN)
    engine.counters.future = 5
    ExceptionNotices(reader.emit, Counters()).look(engine)
    assert reader.lines == []
    assert not [label for label, _ in exceptions(engine) if label == "Future"]


def test_refused_records_are_told_with_a_cause() -> None:
    reader = Reader()
    noticed = ExceptionNotices(reader.emit, Counters())
    for count in (1, 1, 1, 5):
        noticed.refused("trades", count, f"checks: size of {count}")
    assert reader.lines == [
        "records of trades that became dead letters: 1; the last one: checks: size of 1",
        "records of trades that became dead letters: 2; the last one: checks: size of 1",
        "records of trades that became dead letters: 8; the last one: checks: size of 5",
    ]


def test_times_that_look_as_if_they_had_another_unit_are_asked_about_once() -> None:
    timed = Schema("tick", (Field("name", String()), Field("at", Int64())))
    plan = (
        rp.Pipeline("p")
        .source("ticks", timed, time="at", out_of_order="5s")
        .partition("by", key="name")
        .window("w", rp.Tumbling("60s"))
        .fold("f", n=rp.count())
        .sink("out")
        .plan()
    )
    engine, reader = Engine(plan), Reader()
    noticed = ExceptionNotices(reader.emit, engine.counters)
    for second in range(3):
        rows = pa.RecordBatch.from_pylist([{"name": "a", "at": 1_704_067_200 + second}])
        noticed.units.begins(plan.source, Batch(rows, second + 1))
        engine.apply("ticks", rows, second + 1)
        engine.stabilize()
        noticed.look(engine)
    (told,) = (line_of(event) for event in reader.events)
    assert told == (
        "the event times 'at' of 'ticks' lie in 1970: is their unit nanoseconds? For another one "
        'declare at: rp.Timestamp = rp.field(format="s")'
    )
    asked = {
        per_s: unit_remark(plan, 1_704_067_200 * per_s, {"ticks": 1_704_067_100 * per_s})
        for per_s in (1_000, 10**6, 10**9)
    }
    assert [text and text[-5:-1] for text in asked.values()] == ['"ms"', '"us"', None]
    # Times that are as small on purpose, and no times, are not asked about.
    for small_ns in (0, 600_000_000_000, 86_400_000_000_000, watermark.NONE, watermark.END):
        assert unit_remark(plan, small_ns, {"ticks": small_ns}) is None
    # Neither are those of records that are generated from 0 on.
    assert unit_remark(plan, 1_704_067_200, {"ticks": 1_000_000_000}) is None

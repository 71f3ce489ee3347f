"""Windows of trading sessions: half days, lunch breaks, overnight futures, holidays."""

from __future__ import annotations

import pickle
import sys
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import ripple as rp
from ripple.core.errors import PlanError
from ripple.model.pipeline.description import window_text
from ripple.model.window import window_spec
from ripple.testing import check_pipeline
from ripple.testing.reference.trading import trading_window_at

HOUR_NS = 3_600 * 10**9


@rp.record
class Tick:
    """A tick."""

    name: str
    at: rp.Timestamp
    price: int


def _ns(text: str) -> int:
    return int(np.datetime64(text, "ns").astype(np.int64))


def _texts(*times_ns: Any) -> list[str]:
    return [str(np.datetime64(int(one), "ns"))[5:16] for one in times_ns]


def _sessions(*rows: tuple[int, ...]) -> list[dict[str, Any]]:
    """Return sessions with bounds in hours."""
    names = ("open", "close", "break_start", "break_end")
    return [
        {name: hour * HOUR_NS for name, hour in zip(names, row, strict=False)}
        | dict.fromkeys(names[len(row) :])
        for row in rows
    ]


# The second has a break, the fourth adjoins the third.
TABLE = _sessions((10, 14), (34, 40, 36, 37), (58, 62), (62, 66))
TICKS = [
    {"name": "ab"[step % 2], "at": step * HOUR_NS // 2, "price": step} for step in range(14, 136)
]


def pipeline(window: Any, trigger: Any = None) -> rp.Pipeline:
    return (
        rp.Pipeline("sessions")
        .source("ticks", Tick, key="name", out_of_order="2h")
        .partition("by-name", key="name")
        .window("session", window, lateness="1h", trigger=trigger)
        .fold("bars", n=rp.count(), last=rp.last("price"))
        .partition("all", key=("window_start_ns",))
        .fold("both", n=rp.sum("n"), last=rp.max("last"))
        .sink("out")
    )


@pytest.mark.parametrize("outside", ["refuse", "drop", "own"])
@pytest.mark.parametrize(
    ("every", "breaks", "trigger"),
    [
        (None, "in", None),
        (None, "cut", rp.OnEveryElement()),
        ("90min", "in", rp.OnCount(2)),
        ("3h", "cut", rp.OnInterval("1h")),
    ],
)
def test_sessions_equal_the_reference(outside: str, every: Any, breaks: str, trigger: Any) -> None:
    window = rp.TradingSessions(table=TABLE, every=every, breaks=breaks, outside=outside)
    check_pipeline(pipeline(window, trigger), TICKS, (1, 7, 1_000), restarts=[len(TICKS) // 2])


# Breaks at the open and at the close, of a whole session, and of no length.
ODD_BREAKS = _sessions(
    (10, 14, 10, 11), (34, 40, 36, 40), (41, 44, 41, 44), (50, 54, 52, 52), (60, 66)
)  # fmt: skip


def test_breaks_at_the_bounds_of_a_session_equal_the_reference() -> None:
    options = {"every": "7h", "breaks": "cut", "outside": "own"}
    window = rp.TradingSessions(table=ODD_BREAKS, **options)
    check_pipeline(pipeline(window), TICKS, (1, 1_000))
    assert rp.TradingSessions(table=window.table, **options) == window


def test_letters_of_calendars_count_in_graphs() -> None:
    """Branches that read one source, and windows over finals."""
    window = rp.TradingSessions(table=TABLE)
    ticks = rp.Pipeline("graph").source("ticks", Tick, key="name", out_of_order="2h")
    bars = ticks.partition("by-name", key="name").window("session", window, lateness="0s")
    short = ticks.partition("again", key="name").window(
        "short", rp.TradingSessions(table=TABLE[1:3], outside="drop"), lateness="0s"
    )
    both = (
        bars.fold("bars", n=rp.count())
        .finals("closed")
        .partition("all", key="name")
        .window("later", rp.TradingSessions(table=TABLE[:3]))
        .fold("both", n=rp.sum("n"))
        .sink("out")
        .also(short.fold("counts", n=rp.count()).sink("counted"))
    )
    check_pipeline(both, TICKS, (1, 7, 1_000), restarts=[len(TICKS) // 2])


def test_columns_of_later_rows_count() -> None:
    later = [{"open": 0, "close": 5}, {"open": 5, "close": 9, "break_start": 6, "break_end": 7}]
    window = rp.TradingSessions(table=later, breaks="cut")
    assert window.spans.begins_ns[1:-1].tolist() == [0, 5, 6, 7, 9]


@pytest.mark.parametrize("name", ["XASX", "CMES"])
def test_a_session_of_the_day_after_is_open_on_the_last_day(name: str) -> None:
    """In UTC it opens on the day before its date: it is no time between sessions."""
    window = rp.TradingSessions(name, "2026-03-02", "2026-03-03")
    (start,), (is_open,) = window.bounds.starts_of(np.array([_ns("2026-03-02T23:30")]), own=False)
    assert is_open
    assert _texts(start) == ["03-02T23:00"]
    assert rp.TradingSessions(table=window.table, start="2026-03-02", end="2026-03-03") == window


def _bounds(window: rp.TradingSessions) -> dict[tuple[int, int], int]:
    rows = (
        rp.collect(
            rp.Pipeline("w")
            .source("ticks", Tick)
            .partition("by-name", key="name")
            .window("session", window)
            .fold("bars", n=rp.count())
            .sink("out"),
            [{**tick, "name": "a"} for tick in TICKS if 10 * HOUR_NS <= tick["at"] < 66 * HOUR_NS],
        )
        .table()
        .to_pylist()
    )
    hours = [(row["window_start_ns"] / HOUR_NS, row["window_end_ns"] / HOUR_NS) for row in rows]
    return {bounds: row["n"] for bounds, row in zip(hours, rows, strict=True)}


def test_windows_are_the_sessions() -> None:
    sessions = {(10, 14): 8, (34, 40): 12, (58, 62): 8, (62, 66): 8}
    assert _bounds(rp.TradingSessions(table=TABLE, outside="drop")) == sessions
    cut = rp.TradingSessions(table=TABLE, outside="drop", breaks="cut", every="90min")
    assert [bounds for bounds in _bounds(cut) if 34 <= bounds[0] < 40] == [
        (34, 35.5), (35.5, 36), (37, 38.5), (38.5, 40),
    ]  # fmt: skip
    own = rp.TradingSessions(table=TABLE, outside="own")
    assert _bounds(own) == sessions | {(14, 34): 40, (40, 58): 36}


def test_events_outside_are_letters_that_say_why() -> None:
    engine = rp.Engine(pipeline(rp.TradingSessions(table=TABLE)).plan())
    times = (9, 10, 14, 65, 66)
    found = engine.apply("ticks", [{"name": "a", "at": at * HOUR_NS, "price": 1} for at in times])
    beyond = (
        "the event time is not in the calendar of a table, "
        "1970-01-01T10:00:00Z to 1970-01-03T18:00:00Z: extend it"
    )
    assert [(one.row, one.step, one.reason) for one in found] == [
        (0, "session", beyond),
        (2, "session", "the event time is outside of the sessions of a table"),
        (4, "session", beyond),
    ]
    assert engine.counters.dead_lettered == 3


@pytest.mark.parametrize(
    ("name", "on", "expected"),
    [
        ("XNYS", "2026-03-06", ["03-06T14:30", "03-06T21:00"]),
        ("XNYS", "2026-03-09", ["03-09T13:30", "03-09T20:00"]),
        ("XNYS", "2026-11-26", []),
        ("XNYS", "2025-01-09", []),
        ("XNYS", "2026-11-27", ["11-27T14:30", "11-27T18:00"]),
        ("XTKS", "2024-11-01", ["11-01T00:00", "11-01T02:30", "11-01T03:30", "11-01T06:00"]),
        ("XTKS", "2024-11-05", ["11-05T00:00", "11-05T02:30", "11-05T03:30", "11-05T06:30"]),
        ("XSHG", "2026-02-13", ["02-13T01:30", "02-13T03:30", "02-13T05:00", "02-13T07:00"]),
        ("XLON", "2026-12-24", ["12-24T08:00", "12-24T12:30"]),
        ("XHKG", "2026-02-16", ["02-16T01:30", "02-16T04:00"]),
        ("CMES", "2026-11-27", ["11-26T23:00", "11-27T18:00"]),
    ],
)
def test_sessions_of_exchanges(name: str, on: str, expected: list[str]) -> None:
    first = date.fromisoformat(on)
    begin = first.replace(day=1)
    end = date(first.year + first.month // 12, first.month % 12 + 1, 1)
    window = rp.TradingSessions(name, begin, end, breaks="cut")
    bounds = window.bounds
    begins = window.spans.begins_ns[:-1][bounds.is_open]
    # A session has the date of its close in the exchange's zone: those here are of UTC, too.
    days = [
        (open_ns, close_ns)
        for open_ns, close_ns in zip(begins, window.spans.ends_of(begins), strict=True)
        if str(np.datetime64(int(close_ns), "ns"))[:10] == on
    ]
    assert [text for pair in days for text in _texts(*pair)] == expected


def test_a_calendar_as_a_table_is_the_same_window() -> None:
    """So one that was kept in a file is no other computation."""
    made = rp.TradingSessions("XTKS", "2024", "2025")
    kept = rp.TradingSessions(table=made.table.to_pylist(), start="2024", end="2025")
    assert (kept, hash(kept)) == (made, hash(made))
    keys = [
        pipeline(one).plan().fold("bars").node_key
        for one in (made, kept, rp.TradingSessions("XTKS", "2024", "2025-02-01"))
    ]
    assert keys[0] == keys[1] != keys[2]
    other = pickle.loads(pickle.dumps(made))
    assert (other, other.text) == (made, made.text)


def test_tables_take_times_in_all_forms() -> None:
    at = [datetime(2026, 1, 2, 14, 30, tzinfo=UTC), datetime(2026, 1, 2, 21, tzinfo=UTC)]
    texts = ["2026-01-02T14:30:00Z", "2026-01-02T16:00:00-05:00"]
    units = pa.table({name: pa.array([one], pa.timestamp("s", "UTC"))
                      for name, one in zip(("open", "close"), at, strict=True)})  # fmt: skip
    windows = [
        rp.TradingSessions(table=[{"open": one, "close": other}])
        for one, other in (at, texts, [int(each.timestamp()) * 10**9 for each in at])
    ]
    given = [units, units.to_pandas(), pl.DataFrame({"open": [texts[0]], "close": [texts[1]]})]
    assert {*windows, *(rp.TradingSessions(table=one) for one in given)} == {windows[0]}


def test_the_plan_says_calendar_span_and_digest() -> None:
    made = rp.TradingSessions("XNYS", "2024", "2026", every="30min")
    text = pipeline(made).plan().describe()
    assert (
        "window session: sessions of XNYS every 30min, 2024-01-01T00:00:00Z to "
        "2026-01-01T00:00:00Z, 502 of exchange-calendars "
    ) in text
    assert f"digest {made.digest[:8]}, outside: refuse, lateness 1h" in text
    assert window_text(window_spec("w", made)).startswith("w: sessions of XNYS")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("NYSE2", "2020", "2021"), "there is no calendar 'NYSE2' in exchange-calendars .*NYSE"),
        ((5, "2020", "2021"), "name must be that of a calendar, such as 'XNYS', not 5"),
        (("XNYS", "2020"), "end must be a day or a year, .* not None"),
        (("XNYS", "20", "2021"), "start must be a day or a year"),
        (("XNYS", "2021", "2020"), "end must be after start, 2021-01-01, not 2020-01-01"),
        (("XNYS", "2026-11-26", "2026-11-27"), "XNYS has no session from 2026-11-26"),
        (("XSHG", "2020", "2200"), "the calendar of XSHG .* ends at .*: take end="),
        (("XTKS", "1980", "2000"), "the calendar of XTKS .* begins at 1997-01-01: take start="),
        ((), "takes the name of a calendar with its first day and its end"),
    ],
)
def test_calendars_that_are_not_are_refused(given: Any, message: str) -> None:
    with pytest.raises(
        PlanError, match=f"^TradingSessions:? .*{message}|^TradingSessions {message}"
    ):
        rp.TradingSessions(*given)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ([], "table has no "),
        (5, "table must be an Arrow table, a frame or a list of dicts, not 5"),
        ([{"open": 1}], "table has no column 'close'"),
        ([{"open": 1, "close": None}, {"open": 3, "close": 4}], "row 0 has no close"),
        ([{"open": "2026-01-02 14:30", "close": "x"}], "'open' has a text that is no time"),
        (
            pa.table({name: pa.array([5], pa.timestamp("s")) for name in ("open", "close")}),
            "'open' has times without a zone",
        ),
        ([{"open": 1.5, "close": 2.5}], "'open' must be times, not double"),
        ([{"open": 1 << 70, "close": 2}], "times of 'open' are not of one kind"),
        ([{"open": 1, "close": "x"}, {"open": 2, "close": 3}], "times of 'close' are not of one"),
        (
            [{"open": datetime(1, 1, 1, tzinfo=UTC), "close": datetime(2, 1, 1, tzinfo=UTC)}],
            "'open' has a time beyond the years 1678 to 2261",
        ),
        ([{"open": 1, "close": 5, "breakstart": 2}], "'breakstart' is no column of it"),
        (_sessions((5, 5)), "row 0 .* is no session: open < close"),
        (_sessions((8, 12), (2, 9)), "row 0 .* it opens after the session before has closed"),
        (_sessions((2, 9, 4, 10)), "row 0 .* breaks are within"),
        (_sessions((2, 9, 4)), "row 0 has one of break_start and break_end"),
    ],
)  # fmt: skip
def test_tables_that_are_no_sessions_are_refused(table: Any, message: str) -> None:
    with pytest.raises(PlanError, match=f"^TradingSessions: .*{message}"):
        rp.TradingSessions(table=table)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"breaks": "out"}, "breaks must be one of 'in', 'cut', not 'out'"),
        ({"outside": None}, "outside must be one of 'refuse', 'drop', 'own', not None"),
        ({"every": "0s"}, "every must be longer than zero"),
        ({"start": "2030", "end": "2029"}, "end must be after start, 2030-01-01, not 2029-01-01"),
    ],
)
def test_options_that_are_not_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(PlanError, match=message):
        rp.TradingSessions(table=TABLE, **given)


def test_a_missing_package_is_named_with_the_ways_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "exchange_calendars", None)
    with pytest.raises(PlanError, match=r"exchange_calendars: pip install .*table=\.\.\."):
        rp.TradingSessions("XNYS", "2020", "2021")


@pytest.mark.parametrize("outside", ["refuse", "drop", "own"])
@pytest.mark.parametrize(("every", "breaks"), [(None, "in"), ("90min", "cut")])
def test_the_start_of_a_session_is_that_of_its_window(
    outside: str, every: Any, breaks: str
) -> None:
    window = rp.TradingSessions(table=TABLE, every=every, breaks=breaks, outside=outside)
    rows = rp.collect(
        rp.Pipeline("starts")
        .source("ticks", Tick)
        .derive("start", start=rp.col("at").dt.session_start(window))
        .sink("out"),
        TICKS,
    ).rows()
    found = [row["start"] for row in rows]
    expected = [trading_window_at(window, tick["at"]) for tick in TICKS]
    start_ns, end_ns = window.covered_ns
    assert found == [
        None if bounds is None or not start_ns <= tick["at"] < end_ns else bounds[0]
        for bounds, tick in zip(expected, TICKS, strict=True)
    ]
    assert {None, 34 * HOUR_NS} < {*found}


def test_bars_begin_anew_with_a_session() -> None:
    start = rp.col("at").dt.session_start(rp.TradingSessions(table=TABLE)).fill_null(0)
    bars = (
        rp.Pipeline("bars")
        .source("ticks", Tick)
        .derive("session", session=start)
        .filter("in-session", rp.col("session") > 0)
        .scan("numbers", key=["name", "session"], bar=rp.bar(every=5), settled=True)
        .partition("by-bar", key=["session", "name", "bar"])
        .fold("bars", n=rp.count())
        .sink("out")
    )
    ticks = [{**tick, "name": "a"} for tick in TICKS]
    rows = rp.collect(bars, ticks).rows()
    counts: dict[int, list[int]] = {}
    for row in sorted(rows, key=lambda row: (row["session"], row["bar"])):
        counts.setdefault(row["session"] // HOUR_NS, []).append(row["n"])
    assert counts == {10: [5, 3], 34: [5, 5, 2], 58: [5, 3], 62: [5, 3]}
    digest = rp.TradingSessions(table=TABLE).digest
    assert repr(start) == f'col("at").dt.session_start("{digest}").fill_null(0)'
    with pytest.raises(PlanError, match=r"sessions must be rp\.TradingSessions"):
        rp.col("at").dt.session_start("XNYS")  # type: ignore[arg-type]

"""The plugin of pytest: its fixtures, its seeds, and how it shows what differs."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pandas as pd
import polars as pl
import pytest

import ripple as rp
from ripple.testing import check_pipeline, cluster_test, crash_test, plugin
from ripple.testing.differences import differences

pytest_plugins = ("pytester",)
# Compiled modules are imported once a process: a run within this one must not be their first use.
USED = (check_pipeline, crash_test, cluster_test, rp.collect)
# By its name here, and not by the entry point of an installation, which may be another one.
LOADED = (
    "-p",
    "no:ripple",
    "-p",
    "ripple.testing.plugin",
    "-p",
    "no:cacheprovider",
    "-p",
    "no:asyncio",
    "-q",
)

PIPELINE = """
import pytest
import ripple as rp

@rp.record(version=1)
class Trade:
    symbol: str
    size: int
    timestamp_ns: rp.Timestamp

pipeline = (
    rp.Pipeline("sizes").source("trades", Trade).partition("by", key="symbol")
    .fold("f", size=rp.sum("size")).sink("out")
)
trades = [{"symbol": "AB"[i % 2], "size": i, "timestamp_ns": i} for i in range(6)]
"""


@rp.record
class Trade:
    symbol: str
    size: float


@rp.record
class Long:
    text: str
    n: int


LONG = rp.Pipeline("texts").source("texts", Long).sink("out")
BY_SYMBOL = rp.Pipeline("sizes").source("trades", Trade).partition("by", key="symbol")
SIZES = BY_SYMBOL.fold("f", size=rp.sum("size")).sink("out")
TRADES = [{"symbol": "AB"[n % 2], "size": float(n)} for n in range(6)]
ROWS = [{"symbol": "A", "size": 6.0}, {"symbol": "B", "size": 9.0}]


def test_a_pipeline_is_checked_for_each_seed(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        PIPELINE
        + """
def test_sizes(ripple_pipeline):
    assert ripple_pipeline(pipeline, trades) == [
        {"symbol": "A", "size": 6}, {"symbol": "B", "size": 9}
    ]

def test_seed(ripple_seed):
    assert ripple_seed < 3

@pytest.mark.parametrize("more, ripple_seed", [("a", 17), ("b", 18)])
def test_own(more, ripple_seed):
    assert ripple_seed > 16

def test_of_none():
    pass
"""
    )
    pytester.runpytest_inprocess(*LOADED).assert_outcomes(passed=9)
    pytester.runpytest_inprocess(*LOADED, "--ripple-seeds", "1").assert_outcomes(passed=5)
    ended = pytester.runpytest_inprocess(*LOADED, "--ripple-seeds", "5", "-k", "test_seed")
    ended.assert_outcomes(passed=3, failed=2, deselected=8)
    ended.stdout.fnmatch_lines("FAILED *test_seed[[]seed3]*")


def test_a_crash_and_a_cluster_strike_what_the_seed_says(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        PIPELINE
        + """
def test_crash(ripple_crash):
    report = ripple_crash(pipeline, trades, enumerated=())
    assert report.runs

def test_cluster(ripple_cluster):
    ripple_cluster(pipeline, trades * 8)
"""
    )
    pytester.runpytest_inprocess(*LOADED, "--ripple-seeds", "1").assert_outcomes(passed=2)


FORMS = """
import datetime as dt
import decimal
from typing import Annotated

import ripple as rp

@rp.record(version=1)
class Fill:
    at: rp.Timestamp = rp.field(format="%d.%m.%Y %H:%M", zone="UTC")
    day: dt.date = rp.field(format="%d.%m.%Y")
    sent: dt.datetime
    price: Annotated[decimal.Decimal, rp.Decimal(38, 4)]

pipeline = (
    rp.Pipeline("fills").source("fills", Fill, time="at").partition("by", key="day")
    .fold("f", price=rp.sum("price"), first=rp.min("at"), last=rp.max("sent")).sink("out")
)
written = [
    {"at": "02.01.1970 00:00", "day": "01.01.1970", "sent": "1970-01-01T00:00Z", "price": "1.25"}
]
values = [
    {
        "at": 86_400_000_000_000,
        "day": dt.date(1970, 1, 1),
        "sent": dt.datetime(1970, 1, 1, tzinfo=dt.UTC),
        "price": decimal.Decimal("1.25"),
    }
]
"""


def test_events_are_texts_of_the_source_or_their_values(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        FORMS
        + """
def test_texts(ripple_pipeline):
    found = ripple_pipeline(pipeline, written)
    assert found == ripple_pipeline(pipeline, values)
    assert found.rows()[0]["price"] == decimal.Decimal("1.25")
    assert found.rows()[0]["first"] == values[0]["at"]

def test_crash(ripple_crash):
    ripple_crash(pipeline, written * 4, enumerated=())

def test_cluster(ripple_cluster):
    ripple_cluster(pipeline, written * 8)

def test_wrong(ripple_pipeline):
    ripple_pipeline(pipeline, [{**written[0], "at": "soon"}])
"""
    )
    ended = pytester.runpytest_inprocess(*LOADED, "--ripple-seeds", "1")
    ended.assert_outcomes(passed=3, failed=1)
    ended.stdout.fnmatch_lines("*of an event, at is no time of the form %d.%m.%Y*, but 'soon'*")


def test_a_failing_comparison_shows_the_rows(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        PIPELINE
        + """
def test_sizes():
    assert rp.collect(pipeline, trades) == [
        {"symbol": "A", "size": 6}, {"symbol": "B", "size": 8}
    ]
"""
    )
    ended = pytester.runpytest_inprocess(*LOADED)
    ended.assert_outcomes(failed=1)
    ended.stdout.fnmatch_lines(
        ["*Result == list", "*1 of 2 rows differ", "*row 1: size: 9 == 8*symbol='B'*"]
    )


@pytest.mark.parametrize("given", ["0", "-1", "x"])
def test_a_wrong_number_of_seeds_is_said(pytester: pytest.Pytester, given: str) -> None:
    ended = pytester.runpytest_inprocess(*LOADED, "--ripple-seeds", given)
    assert ended.ret == pytest.ExitCode.USAGE_ERROR
    ended.stderr.fnmatch_lines("*is not a whole number from 1 on")


def test_a_result_is_equal_to_its_rows_in_any_form() -> None:
    result = rp.collect(SIZES, TRADES)
    for same in (ROWS, tuple(ROWS), rp.collect(SIZES, TRADES), result.table(), pl.DataFrame(ROWS)):
        assert result == same
    assert result == pd.DataFrame(ROWS, index=[7, 8])
    assert result == [dict(reversed(row.items())) for row in ROWS]
    for other in (ROWS[::-1], ROWS[:1], [], [{**ROWS[0], "more": 1}, ROWS[1]], "AB", 3, None):
        assert result != other
    nan = rp.collect(SIZES, [{"symbol": "A", "size": float("nan")}])
    assert nan == [{"symbol": "A", "size": float("nan")}]
    assert nan != [{"symbol": "A", "size": 1.0}]


def test_differences_are_the_first_few() -> None:
    result = rp.collect(SIZES, TRADES)
    assert differences(result, [ROWS[0]]) == [
        "2 rows == 1 rows",
        "row 1 on the left alone: symbol='B', size=9.0",
    ]
    assert differences([*ROWS, {"symbol": "C", "size": 1}], result) == [
        "3 rows == 2 rows",
        "row 2 on the left alone: symbol='C', size=1",
    ]
    long = [{"text": "x" * 500 + last, "n": n} for n, last in enumerate("ab")]
    assert differences(rp.collect(LONG, long), [long[0], {**long[1], "text": "x" * 501}]) == [
        "1 of 2 rows differ",
        f"row 1: text: …{'x' * 20}b' == …{'x' * 21}'  (in n=1)",
    ]
    many = [{"n": n} for n in range(9)]
    assert differences(result, [{"symbol": "A"}, ROWS[1]]) == [
        "1 of 2 rows differ",
        "row 0: size: 6.0 == no such column  (in symbol='A')",
    ]
    told = differences(result, many)
    assert told is not None
    assert told[-1] == "and 4 more"
    assert differences(result, 3) is None


def test_two_outputs_are_compared_one_by_one() -> None:
    plan = SIZES.also(BY_SYMBOL.fold("n", n=rp.count()).sink("count"))
    one, other = rp.collect(plan, TRADES), rp.collect(plan, TRADES[:5])
    assert one == rp.collect(plan, TRADES)
    assert one != other
    assert one != rp.collect(SIZES, TRADES)
    told = differences(one, other)
    assert told is not None
    assert [line for line in told if line.startswith("output")] == ["output out:", "output count:"]
    assert differences(one, rp.collect(SIZES, TRADES)) == ["outputs out, count == outputs out"]


def test_it_costs_nothing_where_it_is_not_used() -> None:
    program = (
        "import sys, ripple.testing.plugin; "
        "print([name for name in ('numpy', 'pyarrow', 'ripple.model') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
    project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"ripple": plugin.__name__}

"""Dates in expressions against Python's own, and what is refused."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ripple as rp
from ripple.core.errors import PlanError
from ripple.model.expression import Expr, col, lit, when
from ripple.model.schema.types import Date, Int64, Option, String
from ripple.testing.reference.expressions import Failed, evaluate

FIELDS = {"d": Option(Date()), "e": Option(Date()), "n": Option(Int64()), "t": String()}
KINDS = {"d": dt.date, "e": dt.date, "n": int, "t": str}
FIRST, LAST = (
    (one - dt.date(1970, 1, 1)).days for one in (dt.date(1, 1, 1), dt.date(9999, 12, 31))
)

DAYS = st.none() | st.integers(FIRST, LAST) | st.sampled_from([FIRST, -1, 0, 59, 11_016, LAST])
INTS = st.none() | st.integers(-400, 400) | st.sampled_from([2**63 - 1, -(2**63), LAST, 10**17])
ROWS = st.lists(st.fixed_dictionaries({"d": DAYS, "e": DAYS, "n": INTS}), min_size=1, max_size=20)


@st.composite
def dates(draw: st.DrawFn, depth: int = 2) -> Expr:
    """Return an expression of a date."""
    if not depth:
        plain = st.dates().map(lit)
        made = [col("n").dt.date(), col("n").cast(dt.date), col("e").cast(dt.date)]
        return draw(st.sampled_from([col("d"), *made]) | plain)
    one, other = draw(dates(depth - 1)), draw(dates(depth - 1))
    spans = ["1d", "10d", "1w", "2w", "1mo", "5mo", "1q", "1y", "7y"]
    makers = [
        lambda: one + col("n"),
        lambda: draw(st.integers(-400, 400)) + one,
        lambda: one - draw(st.integers(-400, 400)),
        lambda: rp.least(one, other),
        lambda: rp.greatest(one, other),
        lambda: one.fill_null(other),
        lambda: when(one > other).then(one).otherwise(None),
        lambda: one.dt.truncate(draw(st.sampled_from(spans))),
    ]
    return draw(st.sampled_from(makers))()


@st.composite
def results(draw: st.DrawFn) -> Expr:
    """Return an expression of any type, made of dates."""
    one, other = draw(dates()), draw(dates(1))
    part = draw(st.sampled_from(["year", "quarter", "month", "day", "weekday"]))
    found = [
        one,
        one - other,
        one.cast(str),
        one.cast(int),
        one.is_null(),
        one.is_in([dt.date(1970, 1, 1), dt.date(2000, 2, 29)]),
        getattr(one.dt, part)(),
        one.dt.epoch(draw(st.sampled_from(["ns", "s", "d"]))),
        *(one == other, one != other, one < other, one <= other, one > other, one >= other),
    ]
    return draw(st.sampled_from(found))


@given(results(), ROWS)
def test_dates_are_those_of_python(expr: Expr, rows: list[dict[str, Any]]) -> None:
    columns = {name: pa.array([row[name] for row in rows], pa.int64()) for name in "den"}
    found = expr.bind(FIELDS).evaluate(columns, len(rows))
    values = (
        found.values.to_pylist() if isinstance(found.values, pa.Array) else found.values.tolist()
    )
    for at, row in enumerate(rows):
        expected = evaluate(expr, row, KINDS)
        if isinstance(expected, Failed):
            assert found.failed.get(at, "none").startswith(expected.reason), (expr, row, expected)
        else:
            seen = None if found.valid is not None and not found.valid[at] else values[at]
            assert (seen, type(seen)) == (expected, type(expected)), (expr, row)


def test_a_date_is_what_an_expression_of_dates_gives() -> None:
    days = pa.array([0, None], pa.int64())

    def result(expr: Expr) -> Any:
        return expr.bind({"d": Option(Date())}).evaluate({"d": days}, 2)

    assert (col("d") + 1).bind(FIELDS).type == Option(Date())
    assert col("d").bind(FIELDS).type == Option(Date())
    assert lit(dt.date(2026, 1, 31)).bind({}).type == Date()
    assert result(col("d") + 1).values[0] == 1


def test_a_constant_has_one_canonical_text() -> None:
    expr = col("d") >= dt.date(2026, 1, 31)
    assert expr.canonical == "(>=(col d)(lit(date 2026-01-31)))"
    assert repr(expr) == 'col("d") >= datetime.date(2026, 1, 31)'
    bound = expr.bind({"d": Date()})
    assert bound.canonical == "((>=(col d)(lit(date 2026-01-31)))(over(d Date)))"


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: col("d") > "2026-01-31", "write a constant as datetime.date(2026, 1, 31)"),
        (
            lambda: col("d") > col("n"),
            "mixes a date and an int: the date of a time is its .dt.date",
        ),
        (lambda: col("d") == None, "use .is_null()"),  # noqa: E711  # an expression
        (lambda: col("d") + col("e"), "takes no date: use comparisons"),
        (lambda: col("n") - col("d"), "mixes a date and an int"),
        (lambda: col("d") * 2, "takes no date"),
        (lambda: col("d").cast(float), "takes no date"),
        (col("d").dt.hour, "takes no date"),
        (lambda: col("d").dt.truncate("6h"), "use d, w, mo, q or y"),
        (col("d").str.len_chars, "takes no date"),
        (col("t").dt.date, "takes a time, not a text"),
    ],
)
def test_what_is_no_operation_of_dates_is_refused(make: Any, told: str) -> None:
    with pytest.raises(PlanError) as caught:
        make().bind(FIELDS)
    assert told in str(caught.value)

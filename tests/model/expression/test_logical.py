"""Dates and times in expressions, against the plain reference, and the refused operations."""

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
from ripple.model.schema.logical.dates import DATE_LEAST, DATE_MOST
from ripple.model.schema.types import (
    Date,
    DateTime,
    Decimal,
    FieldType,
    Int64,
    Option,
    String,
)
from tests.model.expression.reference import equals_reference

FIELDS: dict[str, FieldType] = {
    "d": Option(Date()), "e": Option(Date()), "s": Option(DateTime()), "t": Option(DateTime()),
    "n": Option(Int64()), "x": String(),
}  # fmt: skip
KINDS = {"d": dt.date, "e": dt.date, "s": dt.datetime, "t": dt.datetime, "n": int, "x": str}
EDGE = 2**63
NOON = dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)
LEAP = dt.date(2000, 2, 29)

INTS = st.none() | st.integers(-400, 400) | st.sampled_from([EDGE - 1, -EDGE, DATE_MOST, 10**17])
DAYS = st.sampled_from([DATE_LEAST, -1, 0, 59, 11_016, DATE_MOST]) | st.integers(
    DATE_LEAST, DATE_MOST
)
TIMES = st.sampled_from([-EDGE, -1, 0, 1, EDGE - 1]) | st.integers(-EDGE, EDGE - 1)
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "d": st.none() | DAYS, "e": st.none() | DAYS, "s": st.none() | TIMES,
            "t": st.none() | TIMES, "n": INTS,
        }
    ),
    min_size=1, max_size=20,
)  # fmt: skip

PLAIN: dict[type, st.SearchStrategy[Expr]] = {
    dt.date: st.dates().map(lit)
    | st.sampled_from([col("d"), col("e"), col("n").dt.date(), col("n").cast(dt.date)]),
    dt.datetime: st.sampled_from([col("s"), col("t"), col("n").cast(dt.datetime), lit(NOON)]),
}
SPANS = {
    dt.date: ["1d", "10d", "1w", "2w", "1mo", "5mo", "1q", "1y", "7y"],
    dt.datetime: ["15m", "1d", "1w", "1mo", "7y"],
}
PARTS = ["year", "quarter", "month", "day", "weekday"]


@st.composite
def values(draw: st.DrawFn, kind: type, depth: int = 2) -> Expr:
    """Return an expression of a date or a time."""
    if not depth:
        return draw(PLAIN[kind])
    one, other = draw(values(kind, depth - 1)), draw(values(kind, depth - 1))
    makers = [
        lambda: one + col("n"),
        lambda: draw(st.integers(-400, 400)) + one,
        lambda: one - draw(st.integers(-400, 400)),
        lambda: one.cast(kind),
        lambda: rp.least(one, other),
        lambda: rp.greatest(one, other),
        lambda: one.fill_null(other),
        lambda: when(one > other).then(one).otherwise(None),
        lambda: one.dt.truncate(draw(st.sampled_from(SPANS[kind]))),
    ]
    return draw(st.sampled_from(makers))()


@st.composite
def results(draw: st.DrawFn, kind: type) -> Expr:
    """Return an expression of any type, made of dates or times."""
    one, other = draw(values(kind)), draw(values(kind, 1))
    found = [
        *(one, one - other, one.cast(str), one.cast(int), one.is_null()),
        one.is_in([LEAP] if kind is dt.date else [NOON]),
        getattr(one.dt, draw(st.sampled_from(PARTS)))(),
        one.dt.epoch(draw(st.sampled_from(["ns", "us", "s", "d"]))),
        *(one == other, one != other, one < other, one <= other, one > other, one >= other),
    ]
    if kind is dt.datetime:
        part = draw(st.sampled_from(["hour", "second", "nanosecond"]))
        found += [one.dt.date(), one.dt.to_string("%F %T.%3f"), getattr(one.dt, part)()]
    return draw(st.sampled_from(found))


TEXTS = st.sampled_from(
    [
        *("2026-01-31", "2026-02-29", "0000-01-01", "9999-12-31", "2026-1-31", " 2026-01-31", ""),
        *("2026-01-31T09:30Z", "2026-01-31 09:30:00+01:00", "2026-01-31T09:30:00.1-0530"),
        *("2026-01-31T09:30:00.123456789+01", "2026-01-31T09:30:00", "2026-01-31T24:00Z"),
        *("2026-01-31T09:30:60Z", "2026-01-31T09:30:00.1234567890Z", "1677-09-21T00:12:43Z"),
        *("1677-09-21T00:12:43.145224192Z", "2262-04-11T23:47:16.854775807Z", "2300-01-01T00:00Z"),
    ]
)


@given(
    texts=st.lists(st.none() | TEXTS | st.text("0123456789-T:Z+ .", max_size=20), min_size=1),
    strict=st.booleans(),
)
def test_texts_become_dates_and_times_or_fail_their_row(
    texts: list[str | None], strict: bool
) -> None:
    rows = [{"x": text, "n": at} for at, text in enumerate(texts)]
    fields: dict[str, FieldType] = {**FIELDS, "x": Option(String())}
    for kind in (dt.date, dt.datetime):
        made = col("x").cast(kind, strict=strict)  # type: ignore[arg-type]
        for expr in (made, made + col("n"), made.cast(int), made.is_null()):
            equals_reference(expr, rows, fields, KINDS)


def test_a_text_that_is_no_date_is_named_with_its_form() -> None:
    for kind, told in ((dt.date, "date of ISO 8601 such as 2026-01-31"), (dt.datetime, "time of")):
        column = pa.array(["noon", None], pa.string())
        made = col("x").cast(kind)
        failed = made.bind({"x": Option(String())}).evaluate({"x": column}).failed
        assert list(failed) == [0]
        assert failed[0].startswith(f"a text that is no {told}")
        assert failed[0].endswith(f' in col("x").cast(datetime.{kind.__name__})')


@given(results(dt.date), ROWS)
def test_dates_are_those_of_python(expr: Expr, rows: list[dict[str, Any]]) -> None:
    equals_reference(expr, rows, FIELDS, KINDS)


@given(results(dt.datetime), ROWS)
def test_times_are_whole_nanoseconds(expr: Expr, rows: list[dict[str, Any]]) -> None:
    equals_reference(expr, rows, FIELDS, KINDS)


def test_results_have_types() -> None:
    made, there = col("n").cast(dt.datetime), col("t").dt.in_zone("Europe/Paris")
    for expr, kind in (
        (col("d"), Date()),
        (col("d") + 1, Date()),
        (col("t") + 1, DateTime()),
        (col("t").dt.date(), Date()),
        (made, DateTime()),
        (there.truncate("1d"), DateTime()),
        (there.hour(), Int64()),
    ):
        assert expr.bind(FIELDS).type == Option(kind), expr
    assert repr(made) == 'col("n").cast(datetime.datetime)'
    assert lit(dt.date(2026, 1, 31)).bind({}).type == Date()
    days = pa.array([0, None], pa.int64())
    assert (col("d") + 1).bind({"d": Option(Date())}).evaluate({"d": days}, 2).values[0] == 1


def test_a_constant_has_one_canonical_text() -> None:
    expr = col("d") >= dt.date(2026, 1, 31)
    assert expr.canonical == "(>=(col d)(lit(date 2026-01-31)))"
    assert repr(expr) == 'col("d") >= datetime.date(2026, 1, 31)'
    bound = expr.bind({"d": Date()})
    assert bound.canonical == "((>=(col d)(lit(date 2026-01-31)))(over(d Date)))"
    expr = col("t") >= NOON
    assert expr.canonical == "(>=(col t)(lit(time 2026-01-31T12:00:00.000000000Z)))"


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
        (col("x").dt.date, "takes a time, not a text"),
        (lambda: col("t") > 5, ".cast(int) gives a time's nanoseconds"),
        (lambda: col("t") > "2026-01-31", "write a constant as a datetime.datetime with tzinfo="),
        (lambda: col("t") > col("d"), "the date of a time is its .dt.date()"),
        (lambda: col("t") + col("s"), "takes no time: use comparisons"),
        (lambda: col("t") * 2, "takes no time"),
        (lambda: col("t").cast(dt.date), "not a time: the date of a time is its .dt.date()"),
        (lambda: lit(0.5).cast(dt.datetime), "takes a text, or an integer, the nanoseconds since"),
        (lambda: col("n").cast(rp.Decimal(9, 0)).cast(dt.date), "takes no decimal"),
        (lambda: lit(dt.datetime(2026, 1, 31)), "has no zone: add one"),  # noqa: DTZ001
    ],
)
def test_other_operations_are_refused(make: Any, told: str) -> None:
    with pytest.raises(PlanError) as caught:
        make().bind(FIELDS)
    assert told in str(caught.value)


@pytest.mark.parametrize("kind", [DateTime(), Date(), Decimal(6, 0)])
def test_the_number_of_a_field_is_an_integer(kind: FieldType) -> None:
    assert col("x").cast(int).bind({"x": kind}).type == Int64()
    assert col("x").cast(int).bind({"x": Option(kind)}).type == Option(Int64())
    assert col("x").bind({"x": kind}).type == kind

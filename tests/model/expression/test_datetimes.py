"""Times of their own type in expressions, against whole nanoseconds, and what is refused."""

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
from ripple.model.schema.types import Date, DateTime, Decimal, FieldType, Int64, Option
from ripple.testing.reference.expressions import Failed, evaluate

FIELDS = {"s": Option(DateTime()), "t": Option(DateTime()), "n": Option(Int64()), "d": Date()}
KINDS = {"s": dt.datetime, "t": dt.datetime, "n": int, "d": dt.date}
EDGE = 2**63
NOON = dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)

TIMES = st.none() | st.integers(-EDGE, EDGE - 1) | st.sampled_from([-EDGE, -1, 0, 1, EDGE - 1])
INTS = st.none() | st.integers(-400, 400) | st.sampled_from([EDGE - 1, -EDGE, 10**18])
ROWS = st.lists(st.fixed_dictionaries({"s": TIMES, "t": TIMES, "n": INTS}), min_size=1, max_size=20)


@st.composite
def times(draw: st.DrawFn, depth: int = 2) -> Expr:
    """Return an expression of a time."""
    if not depth:
        return draw(st.sampled_from([col("s"), col("n").cast(dt.datetime), lit(NOON)]))
    one, other = draw(times(depth - 1)), draw(times(depth - 1))
    makers = [
        lambda: one + col("n"),
        lambda: one - draw(st.integers(-400, 400)),
        lambda: one.cast(dt.datetime),
        lambda: rp.least(one, other),
        lambda: rp.greatest(one, other),
        lambda: one.fill_null(other),
        lambda: when(one > other).then(one).otherwise(None),
        lambda: one.dt.truncate(draw(st.sampled_from(["15m", "1d", "1w", "1mo"]))),
    ]
    return draw(st.sampled_from(makers))()


@st.composite
def results(draw: st.DrawFn) -> Expr:
    """Return an expression of any type, made of times."""
    one, other = draw(times()), draw(times(1))
    part = draw(st.sampled_from(["year", "month", "day", "hour", "second", "nanosecond"]))
    found = [
        *(one, one - other, one.cast(str), one.cast(int), one.is_null(), one.dt.date()),
        one.is_in([NOON]),
        getattr(one.dt, part)(),
        one.dt.epoch("us"),
        one.dt.to_string("%F %T.%3f"),
        *(one == other, one != other, one < other, one <= other, one > other, one >= other),
    ]
    return draw(st.sampled_from(found))


@given(results(), ROWS)
def test_times_are_whole_nanoseconds(expr: Expr, rows: list[dict[str, Any]]) -> None:
    columns = {name: pa.array([row[name] for row in rows], pa.int64()) for name in "stn"}
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


def test_results_have_types() -> None:
    assert (col("t") + 1).bind(FIELDS).type == Option(DateTime())
    made = col("n").cast(dt.datetime)
    assert made.bind({"n": Option(Int64())}).type == Option(DateTime())
    assert repr(made) == 'col("n").cast(datetime.datetime)'
    there = col("t").dt.in_zone("Europe/Paris")
    assert there.truncate("1d").bind(FIELDS).type == Option(DateTime())
    assert there.hour().bind(FIELDS).type == Option(Int64())
    assert col("t").dt.date().bind(FIELDS).type == Option(Date())
    expr = col("t") >= NOON
    assert expr.canonical == "(>=(col t)(lit(time 2026-01-31T12:00:00.000000000Z)))"


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: col("t") > 5, ".cast(int) gives a time's nanoseconds"),
        (lambda: col("t") > "2026-01-31", "write a constant as a datetime.datetime with tzinfo="),
        (lambda: col("t") > col("d"), "the date of a time is its .dt.date()"),
        (lambda: col("t") + col("s"), "takes no time: use comparisons"),
        (lambda: col("t") * 2, "takes no time"),
        (lambda: col("t").cast(dt.date), "not a time: the date of a time is its .dt.date()"),
        (lambda: lit("noon").cast(dt.datetime), "takes an integer, the nanoseconds since 1970"),
        (lambda: col("n").cast(rp.Decimal(9, 0)).cast(dt.date), "takes no decimal"),
        (lambda: lit(dt.datetime(2026, 1, 31)), "has no zone: add one"),  # noqa: DTZ001
    ],
)
def test_what_is_no_operation_of_times_is_refused(make: Any, told: str) -> None:
    with pytest.raises(PlanError) as caught:
        make().bind(FIELDS)
    assert told in str(caught.value)


@pytest.mark.parametrize("kind", [DateTime(), Date(), Decimal(6, 0)])
def test_the_number_of_a_field_is_an_integer(kind: FieldType) -> None:
    assert col("x").cast(int).bind({"x": kind}).type == Int64()
    assert col("x").cast(int).bind({"x": Option(kind)}).type == Option(Int64())
    assert col("x").bind({"x": kind}).type == kind

"""Decimals in expressions against fractions, and what is refused."""

from __future__ import annotations

import decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ripple as rp
from ripple.core.errors import PlanError, SchemaError
from ripple.model.expression import Expr, col, lit, when
from ripple.model.expression.expr import ROUNDINGS
from ripple.model.expression.functions.wide_decimals import rounded
from ripple.model.schema.logical.wide_decimals import stored_text
from ripple.model.schema.types import Decimal, Float, Int64, Option, String
from ripple.testing.reference.expressions import python_type
from tests.model.expression.reference import equals_reference

FIELDS = {"t": Option(String()), "u": Option(String()), "n": Option(Int64()), "x": Option(Float())}
KINDS = {"t": str, "u": str, "n": int, "x": float}

_digits = st.text("0123456789", min_size=0, max_size=11)
TEXTS = st.one_of(
    st.none(),
    st.sampled_from(
        ["", ".", "-", "1e", "1.5.2", " 1", "1_0", "é", "5.", "-.5", "+0", "1e-2", "nan"]
    ),
    st.sampled_from(["99999999999999999.9", "9" * 18, "9" * 19, "0" * 30 + "1", "1." + "0" * 30]),
    st.sampled_from(["9" * 25, "9" * 38, "-" + "9" * 37 + ".9", "1e28", "-0.1234567891e-5"]),
    st.builds(
        "{}{}.{}{}".format,
        st.sampled_from(["", "-", "+"]),
        _digits,
        _digits,
        st.sampled_from(["", "", "e0", "E+3", "e-4", "e17", "e999999999999"]),
    ),
)
EDGE = 2**63
INTS = st.none() | st.integers(-20, 20) | st.sampled_from([EDGE - 1, -EDGE, 10**18, 1 - 10**18])
FLOATS = st.none() | st.floats() | st.integers(-4000, 4000).map(lambda eighths: eighths / 8)
ROWS = st.lists(
    st.fixed_dictionaries({"t": TEXTS, "u": TEXTS, "n": INTS, "x": FLOATS}), min_size=1, max_size=30
)
SCALES = st.sampled_from([0, 1, 2, 4, 9, 18])
NARROW, WIDE = (9, 18), (18, 25, 38)


@st.composite
def decimals(  # noqa: C901  # one case an operation
    draw: st.DrawFn, depth: int = 2, digits: tuple[int, ...] = NARROW
) -> Expr:
    """Return an expression of a decimal."""
    if not depth:
        kind = rp.Decimal(draw(st.sampled_from(digits)), draw(st.sampled_from([0, 1, 4, 9])))
        of = col(draw(st.sampled_from(["t", "u", "n", "x"])))
        return of.cast(kind, strict=draw(st.booleans()))
    left = draw(decimals(depth - 1, digits))
    right = draw(
        st.one_of(
            decimals(depth - 1, digits),
            st.just(col("n")),
            st.integers(-9, 9).map(lit),
            st.sampled_from(["0.5", "-1.50", "3"]).map(decimal.Decimal).map(lit),
        )
    )
    match draw(st.integers(0, 9)):
        case 0:
            return left + right
        case 1:
            return left - right
        case 2:
            return left.round(4) * right
        case 3:
            return left.round(draw(st.integers(0, 9)))
        case 4:
            rounding = draw(st.sampled_from(ROUNDINGS))
            return left.divide(right, scale=draw(SCALES), rounding=rounding)
        case 5:
            return when(left > right).then(left).otherwise(right)
        case 6:
            return left.fill_null(right)
        case 7:
            return rp.least(-left, abs(right))
        case 8:
            return rp.greatest(left, right)
    return left.round(2).cast(rp.Decimal(draw(st.sampled_from(digits)), 3))


@st.composite
def results(draw: st.DrawFn, digits: tuple[int, ...] = NARROW) -> Expr:
    """Return an expression of another type, made of decimals."""
    try:
        one, other = draw(decimals(2, digits)), draw(decimals(1, digits))
        test = draw(
            st.sampled_from(
                [
                    one.cast(str),
                    one.cast(float),
                    one.cast(int),
                    one.is_null(),
                    one.is_in([1, decimal.Decimal("0.50")]),
                    *(one == other, one != other, one < other, one <= other, one > other),
                    one >= other,
                ]
            )
        )
        test.bind(FIELDS)
    except PlanError as error:
        assert "behind the point" in str(error)  # noqa: PT017  # too fine a product
        return lit(1).divide(3, scale=2).cast(str)
    return test


@given(results(WIDE), ROWS)
def test_wide_decimals_equal_fractions(expr: Expr, rows: list[dict[str, Any]]) -> None:
    equals_reference(expr, rows, FIELDS, KINDS)


@given(results(), ROWS)
def test_decimals_equal_fractions(expr: Expr, rows: list[dict[str, Any]]) -> None:
    equals_reference(expr, rows, FIELDS, KINDS)


@given(
    st.lists(st.integers(-(10**12) + 1, 10**12 - 1) | st.none(), min_size=1, max_size=20),
    st.sampled_from(
        [
            col("p") * 3,
            col("p") + decimal.Decimal("0.00001"),
            -col("p"),
            col("p").round(1),
            col("p").divide(7, scale=3),
            col("p").cast(rp.Decimal(18, 6)),
            col("p").fill_null(decimal.Decimal("1.5")),
            col("p") > decimal.Decimal("0.5"),
            col("p").cast(str),
            col("p").is_in([0, decimal.Decimal("1.25")]),
        ]
    ),
)
def test_expressions_of_fields_equal_fractions(units: list[int | None], expr: Expr) -> None:
    kind = Option(Decimal(12, 4))
    rows = [{"p": number} for number in units]
    equals_reference(expr, rows, {"p": kind}, {"p": python_type(kind)})


@given(
    st.lists(st.integers(-(10**38) + 1, 10**38 - 1) | st.none(), min_size=1, max_size=20),
    st.sampled_from(
        [
            col("p"),
            col("p") * 3,
            col("p") + decimal.Decimal("0.00001"),
            3 - col("p"),
            -col("p"),
            abs(col("p")),
            col("p").round(1),
            col("p").divide(7, scale=3, rounding="floor"),
            lit(1).divide(col("p"), scale=18),
            col("p").cast(rp.Decimal(38, 6)),
            col("p").cast(rp.Decimal(18, 4), strict=False),
            col("p").cast(int, strict=False),
            col("p").fill_null(decimal.Decimal("1.5")),
            rp.least(col("p"), decimal.Decimal("0.5")),
            col("p") > decimal.Decimal("0.5"),
            col("p") <= decimal.Decimal("0.00001"),
            col("p").round(2) == col("p"),
            col("p").cast(str),
            col("p").cast(float),
            col("p").is_in([0, decimal.Decimal("1.25")]),
            col("p") + decimal.Decimal("1" + "0" * 20),
            col("p") >= decimal.Decimal("12345678901234567890.12345"),
            rp.greatest(decimal.Decimal("0.00000000000000000001"), col("p")),
            col("p").fill_null(decimal.Decimal("-99999999999999999999")),
        ]
    ),
)
def test_expressions_of_wide_fields_equal_fractions(units: list[int | None], expr: Expr) -> None:
    kind = Option(Decimal(38, 4))
    rows = [{"p": None if one is None else stored_text(one)} for one in units]
    equals_reference(expr, rows, {"p": kind}, {"p": python_type(kind)})


def test_types_of_results() -> None:
    wide = {"p": Decimal(20, 4)}
    assert (col("p") * 2).bind(wide).type == Decimal(38, 4)
    assert col("p").bind(wide).type == Decimal(20, 4)
    assert col("p").cast(rp.Decimal(9, 4)).bind(wide).type == Decimal(9, 4)
    fields = {"p": Decimal(12, 4)}
    assert (col("p") + col("p").cast(rp.Decimal(38, 6))).bind(fields).type == Decimal(38, 6)
    assert (col("p") * col("p")).bind(fields).type == Decimal.wide(8)
    assert col("p").bind(fields).type == Decimal(12, 4)
    assert col("p").round(1).cast(rp.Decimal(9, 2)).bind(fields).type == Decimal(9, 2)


@pytest.mark.parametrize("expr", [lit(decimal.Decimal("1.50")), lit(decimal.Decimal("1E+2"))])
def test_constants_keep_their_digits(expr: Expr) -> None:
    digits = str(expr.value.digits)
    assert expr.cast(str).bind({}).evaluate({}, 1).values.to_pylist() == [digits]
    assert expr.canonical == f"(lit(decimal {digits}))"


def test_canonical_and_readable_texts() -> None:
    expr = col("t").cast(rp.Decimal(18, 4)).divide(3, scale=2)
    assert expr.canonical == (
        "(divide(cast(decimal 18 4)(col t))(lit(int 3))(lit(int 2))(lit half_even))"
    )
    shown = 'col("t").cast(rp.Decimal(18, 4)).divide(3, scale=2, rounding="half_even")'
    assert repr(expr) == shown


_D = col("t").cast(rp.Decimal(18, 4))
_W = col("t").cast(rp.Decimal(38, 20))


@pytest.mark.parametrize(
    ("misuse", "told"),
    [
        (lambda: (_D + col("x")).cast(str), "mixes a decimal and a float: .cast(float)"),
        (lambda: (_D + "1").cast(str), "mixes a decimal and a text: .cast(rp.Decimal"),
        (lambda: _D / 3, "write .divide(other, scale=2)"),
        (lambda: col("x").divide(3, scale=2), "divides a float, and .divide is of decimals"),
        (lambda: _D.divide(col("x"), scale=2), "or .cast(rp.Decimal(18, 4)) the float"),
        (lambda: (_D + " EUR").cast(str), "or .cast(str) the decimal"),
        (lambda: _D.fill_null(None).cast(str), "fills nulls with null: give a value"),
        (_D.sqrt, "takes no decimal: .cast(float)"),
        (_D.is_nan, "takes no decimal: .cast(float)"),
        (lambda: _D * _D * _D * _D * _D, "20 digits behind the point"),
        (lambda: _D.cast(rp.Decimal(18, 2)), ".round(2) it first"),
        (lambda: _D > None, "use .is_null()"),
        (lambda: _D.divide(3, scale=19), "the scale of .divide"),
        (lambda: _D.divide(3, scale=2, rounding="nearest"), "rounding is one of half_even"),
        (lambda: lit(decimal.Decimal("1e40")), "more than 38 digits"),
        (lambda: lit(decimal.Decimal("nan")), "is no number"),
        (lambda: col("t").cast(rp.Decimal(39, 9)), "from 1 to 38"),
        (lambda: _W / 3, "write .divide(other, scale=2)"),
        (lambda: _W * _W, "40 digits behind the point"),
        (lambda: _W + col("x"), "or .cast(rp.Decimal(38, 4)) the float"),
        (lambda: _W + "1", "or .cast(str) the decimal"),
        (lambda: _W > None, "use .is_null()"),
        (_W.sqrt, "takes no decimal: .cast(float)"),
        (lambda: _W.cast(rp.Decimal(18, 2)), ".round(2) it first"),
        (
            lambda: col("t").cast(rp.Decimal(38, 20)) + 10**18,
            "with 20 more digits does not fit into 38",
        ),
        (lambda: col("t").cast(rp.Decimal(2, 3)), "scale"),
    ],
)
def test_what_does_not_fit_is_told(misuse: Any, told: str) -> None:
    with pytest.raises(PlanError) as caught:
        misuse().bind(FIELDS)
    assert told in str(caught.value)


def test_a_field_says_how_many_digits() -> None:
    @rp.record
    class Price:
        price: rp.Decimal(18, 2)  # type: ignore[valid-type]  # which only type checkers refuse
        fee: decimal.Decimal

    with pytest.raises(SchemaError, match=r"Price\.fee: .* say how many digits, Annotated"):
        rp.schema_of(Price)


@pytest.mark.parametrize(
    ("expr", "told"),
    [
        (_D, "a value that does not fit the rp.Decimal"),
        (col("u").cast(rp.Decimal(3, 1)), "a value that does not fit the rp.Decimal"),
        (col("v").cast(rp.Decimal(18, 4)), "a text that is not a number"),
        (_D.round(0).divide(col("n"), scale=2), "a value that does not fit the rp.Decimal"),
        (lit(1).divide(col("n"), scale=2), "integer division by zero"),
        ((col("n") + 1000).cast(rp.Decimal(4, 1)), "a value that does not fit the rp.Decimal"),
        ((col("n") + 1e9).cast(rp.Decimal(9, 0)), "a value that does not fit the rp.Decimal"),
        ((col("n") / 0).cast(rp.Decimal(9, 0)), "a value that does not fit the rp.Decimal"),
        (lit(10**18).divide(1, scale=0), "integer overflow"),
    ],
)
def test_a_row_says_what_failed(expr: Expr, told: str) -> None:
    columns = {"t": pa.array(["1.23456"]), "u": pa.array(["100"]), "v": pa.array(["1,5"])}
    fields = {**dict.fromkeys(columns, String()), "n": Int64()}
    found = expr.cast(str).bind(fields).evaluate({**columns, "n": np.array([0])}, 1)
    assert found.failed[0] == f"{told} in {expr.cast(str)!r}"


def test_columns_in_pieces_give_the_same() -> None:
    column = pa.array([f"{k}.{k % 100:02d}" for k in range(1000)])
    bound = (col("t").cast(rp.Decimal(18, 2)) * 3).divide(7, scale=5).cast(str).bind(FIELDS)
    whole = bound.evaluate({"t": column}, 1000).values.to_pylist()
    pieces = [
        bound.evaluate({"t": column.slice(k, 7)}).values.to_pylist() for k in range(0, 1000, 7)
    ]
    assert [text for piece in pieces for text in piece] == whole
    assert np.unique(whole).size == 1000


@pytest.mark.parametrize(("precision", "scale"), [(18, 4), (5, 2), (18, 0), (18, 18)])
def test_floats_become_the_nearest_decimals(precision: int, scale: int) -> None:
    """Of the exact value: 1.005 is a little less than it reads, and 0.125 is halfway."""
    halves = [(n + 0.5) / 10**k for n in range(-60, 60) for k in range(6)]
    more = [0.0, -0.0, 5e-324, 1.005, 2.675, 0.125, -0.375, 999.995, 999.994, 2.0**51, 2.0**52 + 1]
    x = halves + more + [float(n) / 1024 for n in range(-999, 999, 7)]
    kind = rp.Decimal(precision, scale)
    found = col("x").cast(kind, strict=False).bind({"x": Float()}).evaluate({"x": np.array(x)})
    unit, context = decimal.Decimal(1).scaleb(-scale), decimal.Context(prec=60)
    exact = [decimal.Decimal(value).quantize(unit, context=context) for value in x]
    units = [int(value.scaleb(scale, context)) for value in exact]
    fitting = [abs(number) < 10**precision for number in units]
    valid = np.ones(len(x), np.bool_) if found.valid is None else found.valid
    assert valid.tolist() == fitting
    assert found.values[valid].tolist() == [units[row] for row in np.flatnonzero(valid)]


@pytest.mark.parametrize("rounding", ROUNDINGS)
def test_narrow_and_wide_values_of_a_column_are_rounded_alike(rounding: Any) -> None:
    """Values of up to 18 digits are computed in 64 bits, others are not."""
    ends = [0, 1, 5, 15, 25, 150, 10**18 - 1, 10**18, 2**63 - 1, 2**63, 10**30 + 5, 10**37]
    units = [sign * end for end in ends for sign in (1, -1)]
    texts = [str(decimal.Decimal(one).scaleb(-4, decimal.Context(prec=40))) for one in units]
    wide, by = col("t").cast(rp.Decimal(38, 4)), col("u").cast(rp.Decimal(38, 4))
    columns = {"t": pa.array(texts), "u": pa.array([*texts[7:], *texts[:7]])}
    divisors = [*units[7:], *units[:7]]
    quotients = wide.divide(by, scale=2, rounding=rounding).cast(str).bind(FIELDS)
    found = quotients.evaluate(columns)
    for row, (one, other) in enumerate(zip(units, divisors, strict=True)):
        expected = rounded(100 * one, other, rounding) if other else 10**38
        assert found.valid is not None
        assert found.valid[row] == (abs(expected) < 10**38)
        if found.valid[row]:
            assert int(found.values[row].as_py().replace(".", "")) == expected
    order = (wide > by).cast(int).bind(FIELDS).evaluate(columns).values.tolist()
    assert order == [a > b for a, b in zip(units, divisors, strict=True)]

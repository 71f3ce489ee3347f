"""Values as text: the numbers of sexplib."""

import math
from decimal import Decimal

import pytest

from ripple.core.errors import DeltaError
from ripple.core.sexp import dumps
from ripple.engine.changes.text import float_text, value_to_sexp

VALUE = {
    "symbol": "AAPL",
    "price": 150.25,
    "size": 200,
    "timestamp_ns": 1709000001000000000,
    "venue": "XNAS",
}
# The line "sexp trade" of the original library's vectors.
VECTOR = "((symbol AAPL)(price 150.25)(size 200)(timestamp_ns 1709000001000000000)(venue XNAS))"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (VALUE, VECTOR),
        ({"x": None, "y": True, "z": [1, {"a": 1.5}]}, "((x())(y true)(z(1((a 1.5)))))"),
    ],
)
def test_value_prints_in_the_shapes_of_the_book(value, text):
    assert dumps(value_to_sexp(value)) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (150.25, "150.25"),
        (2801.5, "2801.5"),
        (150.0, "150"),
        (-0.0, "-0"),
        (0.1 + 0.2, "0.30000000000000004"),
        (1e22, "1E+22"),
        (math.nan, "NAN"),
        (-math.inf, "-INF"),
    ],
)
def test_float_prints_as_sexplib_prints_it(value, text):
    assert float_text(value) == text


def test_value_without_an_expression_is_refused():
    with pytest.raises(DeltaError, match="a Decimal has no S-expression"):
        value_to_sexp(Decimal(1))

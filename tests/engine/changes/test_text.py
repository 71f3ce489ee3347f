"""Deltas as text: the shapes of the book, the numbers of sexplib."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripple.core.errors import DeltaError
from ripple.core.sexp import dumps, loads
from ripple.engine.changes import (
    FieldRemove,
    FieldSet,
    Final,
    MapRemove,
    MapSet,
    Patch,
    Remove,
    Set,
    of_sexp,
    to_sexp,
)
from ripple.engine.changes.text import float_text
from ripple.model.schema.types import Field, Float, Int, Int64, Option, Schema, String
from tests.engine.changes.strategies import deltas, frozen, schemas

TRADE = Schema(
    "trade",
    (
        Field("symbol", String()),
        Field("price", Float()),
        Field("size", Int()),
        Field("timestamp_ns", Int64()),
        Field("venue", String(), optional=True),
    ),
)
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
    ("delta", "text"),
    [
        (Set(VALUE), f"(Set{VECTOR})"),
        (Set(VALUE | {"venue": None}), f"(Set{VECTOR.replace('(venue XNAS)', '')})"),
        (
            Patch((FieldSet("price", 150.25),)),
            "(Patch((Field_set(field_name price)(value 150.25))))",
        ),
        (Patch((FieldRemove("venue"),)), "(Patch((Field_remove(field_name venue))))"),
        (Patch(()), "(Patch())"),
        (Remove(), "Remove"),
        (Final(VALUE), f"(Final{VECTOR})"),
    ],
)
def test_delta_prints_in_the_shapes_of_the_book(delta, text):
    assert dumps(to_sexp(delta, TRADE)) == text
    assert to_sexp(of_sexp(loads(text), TRADE), TRADE) == loads(text)


def test_map_operations_print_without_a_schema():
    delta = Patch((MapSet("k", [["a", []]]), MapRemove("k2")))
    assert dumps(to_sexp(delta)) == ("(Patch((Map_set(key k)(value((a()))))(Map_remove(key k2))))")


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


def test_option_prints_as_a_list():
    schema = Schema("s", (Field("x", Option(Float())),))
    assert dumps(to_sexp(Set({"x": None}), schema)) == "(Set((x())))"
    assert dumps(to_sexp(Set({"x": 1.5}), schema)) == "(Set((x(1.5))))"


@given(st.data())
def test_text_round_trip_gives_the_same_delta(data):
    schema = data.draw(schemas)
    delta = data.draw(deltas(schema.fields))
    again = of_sexp(loads(dumps(to_sexp(delta, schema))), schema)
    # repr tells -0.0 from 0.0, but not one NaN from another, as the text does not.
    assert frozen(again, float_key=repr) == frozen(delta, float_key=repr)


@pytest.mark.parametrize(
    "text",
    [
        "Removed",
        "(Set)",
        "(Final)",
        "(Final x)",
        "(Set ((symbol A)))",
        "(Set ((symbol A)(symbol A)))",
        "(Set x)",
        "(Patch)",
        "(Patch (x))",
        "(Patch ((Field_set (field_name pirce) (value 1))))",
        "(Patch ((Field_set (field_name price) (value abc))))",
        "(Patch ((Field_set (field_name size) (value 1.5))))",
        "(Patch ((Field_set (field_name symbol) (value ()))))",
    ],
)
def test_text_that_is_no_delta_of_the_schema_is_refused(text):
    with pytest.raises(DeltaError):
        of_sexp(loads(text), TRADE)

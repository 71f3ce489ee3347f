"""Schemas as S-expressions are the original library's, to the byte."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from ripple.core import sexp
from ripple.core.errors import SchemaError
from ripple.model.schema import (
    Case,
    Field,
    Int,
    List,
    Option,
    Record,
    Schema,
    Variant,
    notation,
)
from ripple.model.schema.types import DEPTH_MAX, FieldType
from tests.model.schema.trade import TRADE
from tests.strategies import schemas

VECTOR = (Path(__file__).parents[2] / "data" / "schema.sexp").read_text().strip()


def test_text_equals_the_original_librarys() -> None:
    assert notation.dumps(TRADE) == VECTOR
    assert notation.loads(VECTOR) == TRADE


@given(schemas(refs=True, nested_options=True))
def test_schema_survives_the_round_trip(schema: Schema) -> None:
    assert notation.loads(notation.dumps(schema)) == schema


def test_members_are_read_in_any_order() -> None:
    text = "((doc())(fields(((doc())(optional false)(typ Int)(name x))))(name t)(version 2))"
    assert notation.loads(text) == Schema("t", (Field("x", Int()),), 2)


def test_deepest_allowed_type_survives_the_round_trip_and_one_deeper_is_refused() -> None:
    kind: FieldType = Int()
    for _ in range(DEPTH_MAX - 1):
        kind = Variant((Case("c", (kind,)),))
    schema = Schema("deep", (Field("x", kind),))
    assert notation.loads(notation.dumps(schema)) == schema
    with pytest.raises(SchemaError, match=r"deep.x: nested deeper than 48"):
        Schema("deep", (Field("x", Option(kind)),))
    with pytest.raises(SchemaError, match="nested deeper than 48"):
        notation.type_from_sexp(["List", notation.type_to_sexp(kind)])


def test_absurdly_deep_type_is_refused_without_exhausting_the_stack() -> None:
    kind: FieldType = Int()
    for _ in range(100_000):
        kind = List(kind)
    with pytest.raises(SchemaError, match="nested deeper than 48"):
        Schema("deep", (Field("x", kind),))
    while isinstance(kind, List):  # a chain this long cannot be dropped all at once
        kind = kind.of


GOOD_FIELD = "((name x)(typ Int)(optional false)(doc()))"


def test_types_without_members_are_read() -> None:
    text = (
        "((name e)(version 1)(fields(((name a)(typ(Record()))(optional false)(doc()))"
        "((name b)(typ(Variant()))(optional false)(doc()))))(doc()))"
    )
    assert notation.loads(text).fields == (Field("a", Record(())), Field("b", Variant(())))
    assert notation.loads("((name e)(version 1)(fields())(doc()))") == Schema("e", ())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("trade", "a schema is made of name, version, fields, doc"),
        ("((name t)(version 1)(doc()))", "a schema lacks fields"),
        (f"((name t)(name t)(version 1)(fields({GOOD_FIELD}))(doc()))", r"each once.*\(name t\)"),
        (f"((name t)(version 1)(fields({GOOD_FIELD}))(doc())(x y))", r"seen \(x y\)"),
        (f"((name t)(version 0)(fields({GOOD_FIELD}))(doc()))", "whole number from 1 on"),
        (f"((name t)(version -1)(fields({GOOD_FIELD}))(doc()))", "version is -1"),
        (f"((name t)(version 1{'0' * 30})(fields({GOOD_FIELD}))(doc()))", "version is 1000"),
        (f"((name (t))(version 1)(fields({GOOD_FIELD}))(doc()))", r"name is \(t\), not an atom"),
        (f"((name t)(version 1)(fields({GOOD_FIELD}))(doc x))", r"doc is x, neither"),
        ("((name t)(version 1)(fields x)(doc()))", "fields is x, not a list"),
        (
            f"((name t)(version 1)(fields({GOOD_FIELD}{GOOD_FIELD}))(doc()))",
            "two fields named 'x'",
        ),
    ],
)
def test_malformed_schema_is_refused_with_the_member_named(text: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        notation.loads(text)


@pytest.mark.parametrize(
    "text",
    ["int", "(Option)", "(List Int Int)", "(Ref (x))", "(Record x)", "(Variant x)"],
)
def test_malformed_type_is_refused(text: str) -> None:
    with pytest.raises(SchemaError):
        notation.type_from_sexp(sexp.loads(text))


def test_field_that_is_neither_optional_nor_required_is_refused() -> None:
    text = GOOD_FIELD.replace("false", "maybe")
    with pytest.raises(SchemaError, match="field x: optional is maybe"):
        notation.loads(f"((name t)(version 1)(fields({text}))(doc()))")


def test_name_that_is_not_utf8_is_refused() -> None:
    text = GOOD_FIELD.replace("x", r'"\255"')
    with pytest.raises(SchemaError, match="a text in UTF-8"):
        notation.loads(f"((name t)(version 1)(fields({text}))(doc()))")

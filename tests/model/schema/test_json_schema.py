"""JSON Schema documents: ours come back exactly, others are understood or refused by field."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pydantic
import pytest
from hypothesis import given

from ripple.core.errors import SchemaError
from ripple.model.schema import (
    Bool,
    Case,
    Field,
    FieldType,
    Float,
    Int,
    Int64,
    List,
    Option,
    Record,
    Ref,
    Schema,
    String,
    Variant,
    document,
)
from ripple.model.schema.json_schema import from_json_schema, to_json_schema
from tests.model.schema.trade import TRADE
from tests.strategies import schemas


@given(schemas(refs=True))
def test_schema_survives_the_round_trip_through_text(schema: Schema) -> None:
    assert from_json_schema(json.dumps(to_json_schema(schema))) == schema


def test_document_says_what_json_schema_says() -> None:
    assert to_json_schema(TRADE) == {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "trade",
        "x-ripple-version": 1,
        "description": "Trade event from exchange",
        "type": "object",
        "properties": {
            "symbol": {"type": "string"},
            "price": {"type": "number"},
            "size": {"type": "integer"},
            "timestamp_ns": {"type": "integer", "format": "int64"},
            "venue": {"type": "string", "description": "MIC"},
            "tags": {
                "type": "array",
                "items": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            },
            "leg": {
                "type": "object",
                "properties": {"x": {"type": "boolean"}},
                "required": ["x"],
            },
            "kind": {
                "oneOf": [
                    {
                        "type": "object",
                        "properties": {
                            "A": {
                                "type": "array",
                                "prefixItems": [{"type": "integer"}, {"$ref": "ripple:vwap"}],
                                "items": False,
                                "minItems": 2,
                            }
                        },
                        "required": ["A"],
                        "additionalProperties": False,
                    },
                    {"const": "B"},
                ]
            },
            "raw": {"x-ripple-type": "opaque"},
        },
        "required": ["symbol", "price", "size", "timestamp_ns"],
    }


class Leg(pydantic.BaseModel):
    ratio: int
    open: bool = True


class Order(pydantic.BaseModel):
    """An order."""

    symbol: str = pydantic.Field(description="ticker", min_length=1)
    price: float | None = None
    legs: list[Leg]
    best: Leg | None = None
    limit: int | str
    child: Order | None = None


class LegStruct(msgspec.Struct):
    ratio: int
    open: bool


class OrderStruct(msgspec.Struct):
    legs: list[LegStruct]
    limit: int | str
    child: OrderStruct | None = None


def test_document_of_a_pydantic_model_is_understood() -> None:
    leg = Record((Field("ratio", Int()), Field("open", Bool(), optional=True)))
    limit = Variant((Case("integer", (Int(),)), Case("string", (String(),))))
    assert from_json_schema(Order.model_json_schema()) == Schema(
        "Order",
        (
            Field("symbol", String(), doc="ticker"),
            Field("price", Float(), optional=True),
            Field("legs", List(leg)),
            Field("best", leg, optional=True),
            Field("limit", limit),
            Field("child", Ref("Order"), optional=True),
        ),
        doc="An order.",
    )


def test_document_of_a_msgspec_struct_is_understood() -> None:
    leg = Record((Field("ratio", Int()), Field("open", Bool())))
    limit = Variant((Case("integer", (Int(),)), Case("string", (String(),))))
    assert from_json_schema(msgspec.json.schema(OrderStruct), name="order", version=2) == Schema(
        "order",
        (
            Field("legs", List(leg)),
            Field("limit", limit),
            Field("child", Ref("order"), optional=True),
        ),
        2,
    )


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ({"type": ["string", "null"]}, Option(String())),
        ({"type": ["string", "integer"]}, None),
        ({"enum": ["a", None]}, Option(Variant((Case("a"),)))),
        ({"const": "a"}, Variant((Case("a"),))),
        ({"allOf": [{"type": "number"}]}, Float()),
        ({"type": "integer", "minimum": 0}, Int()),
        ({"type": "integer", "format": "int64"}, Int64()),
        ({"anyOf": [{"title": "X", "type": "string"}, {"$ref": "#/$defs/a~1b"}]}, None),
    ],
)
def test_other_spellings_of_json_schema_are_understood(
    node: dict[str, Any], expected: FieldType | None
) -> None:
    schema = from_json_schema(
        {
            "title": "t",
            "type": "object",
            "properties": {"x": node},
            "required": ["x"],
            "$defs": {"a/b": {"title": "Y", "type": "integer"}},
        }
    )
    kind = schema.fields[0].type
    if expected is None:
        assert isinstance(kind, Variant)
        assert len(kind.cases) == 2
    else:
        assert kind == expected


@pytest.mark.parametrize(
    ("node", "message"),
    [
        (True, r"t\.rows\[\]: True allows any value"),
        ({}, r"t\.rows\[\]: {} allows any value"),
        ({"type": "null"}, r"t\.rows\[\]: .*cannot be expressed"),
        ({"type": "date"}, r"t\.rows\[\]: .*no known type"),
        ({"description": "?"}, r"t\.rows\[\]: .*no known type"),
        ({"type": "object"}, r"t\.rows\[\]: an object with any keys"),
        (
            {"type": "object", "properties": {}, "additionalProperties": {"type": "string"}},
            r"t\.rows\[\]: an object with any keys",
        ),
        ({"type": "object", "properties": {}}, r"t\.rows\[\]: a record has no fields"),
        ({"type": "array"}, r"t\.rows\[\]: an array needs one schema"),
        ({"type": "array", "prefixItems": [], "items": {"type": "string"}}, "needs one schema"),
        ({"enum": [1]}, r"t\.rows\[\]: an enum may hold texts and null, not 1"),
        ({"enum": "a"}, r"t\.rows\[\]: enum is 'a', not a list"),
        ({"anyOf": [{"type": "null"}]}, r"t\.rows\[\]: null alone"),
        ({"anyOf": [{"type": "string"}] * 2}, r"t\.rows\[\]: a variant has two cases"),
        ({"allOf": [{"type": "string"}] * 2}, r"t\.rows\[\]: allOf several"),
        ({"not": {"type": "string"}}, r"t\.rows\[\]: not cannot be expressed"),
        ({"$ref": "other.json"}, r"t\.rows\[\]: \$ref 'other.json' leads out"),
        ({"$ref": "#/nowhere"}, r"t\.rows\[\]: \$ref '#/nowhere' leads nowhere"),
        (
            {"type": "object", "properties": {"a": {"type": "string", "description": 1}}},
            r"t\.rows\[\]\.a: description is 1, not a text",
        ),
    ],
)
def test_inexpressible_document_is_refused_by_path(node: Any, message: str) -> None:
    root = {
        "title": "t",
        "type": "object",
        "properties": {"rows": {"type": "array", "items": node}},
    }
    with pytest.raises(SchemaError, match=message):
        from_json_schema(root)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[" * 100_000, "not JSON"),
        (b"\xff", "not JSON"),
        ("[]", r"\[\] is no schema"),
        ("{}", "allows any value"),
        ('{"type": "object"}', "no title: give name="),
        ('{"title": "t", "type": "string"}', "the document's root is no object"),
        ('{"title": "t", "$ref": "#"}', "the document's root is no object"),
        ('{"title": 5, "type": "object"}', "title is 5, not a text"),
        (
            '{"title": "t", "x-ripple-version": "1", "type": "object", '
            '"properties": {"x": {"type": "string"}}}',
            "x-ripple-version is '1', not a whole number",
        ),
    ],
)
def test_malformed_document_is_refused(text: str | bytes, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        from_json_schema(text)


def test_document_beyond_the_limit_is_not_read() -> None:
    with pytest.raises(SchemaError, match="DOCUMENT_BYTES_MAX"):
        from_json_schema(" " * (document.DOCUMENT_BYTES_MAX + 1))


def test_references_that_multiply_are_bounded() -> None:
    defs: dict[str, Any] = {"d40": {"type": "string"}}
    for index in range(40):
        ref = {"$ref": f"#/$defs/d{index + 1}"}
        defs[f"d{index}"] = {"type": "object", "properties": {"a": ref, "b": ref}}
    with pytest.raises(SchemaError, match=r"nested deeper|TYPES_MAX"):
        from_json_schema({"title": "t", "$ref": "#/$defs/d0", "$defs": defs})


@pytest.mark.parametrize("keyword", ["anyOf", "items", "properties"])
def test_absurd_depth_is_refused(keyword: str) -> None:
    node: dict[str, Any] = {"type": "string"}
    for _ in range(5_000):
        if keyword == "anyOf":
            node = {"anyOf": [node]}
        elif keyword == "items":
            node = {"type": "array", "items": node}
        else:
            node = {"type": "object", "properties": {"x": node}}
    with pytest.raises(SchemaError, match="nested deeper than 48"):
        from_json_schema({"title": "t", "type": "object", "properties": {"x": node}})


@pytest.mark.parametrize(
    ("kind", "optional"), [(Option(Option(Int())), False), (Option(Int()), True)]
)
def test_two_kinds_of_null_are_refused(kind: FieldType, optional: bool) -> None:
    with pytest.raises(SchemaError, match=r"s\.x: .*two kinds of null"):
        to_json_schema(Schema("s", (Field("x", kind, optional),)))

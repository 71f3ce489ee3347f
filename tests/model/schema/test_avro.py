"""Avro schemas: ours come back exactly, others are understood or refused by field."""

from __future__ import annotations

import json
from typing import Any

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
from ripple.model.schema.avro import from_avro, to_avro
from ripple.model.schema.types import DEPTH_MAX
from tests.model.schema.trade import TRADE
from tests.strategies import schemas


def plain(name: str) -> str:
    return name if name.isascii() and name.isalpha() else f"x{name.encode().hex()}"


def renamed(kind: FieldType) -> FieldType:
    """Give every name the form that Avro allows."""
    match kind:
        case Option():
            return Option(renamed(kind.of))
        case List():
            return List(renamed(kind.of))
        case Record():
            return Record(renamed_fields(kind.fields))
        case Variant():
            return Variant(
                tuple(Case(plain(c.name), tuple(map(renamed, c.args))) for c in kind.cases)
            )
    return kind


def renamed_fields(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    return tuple(Field(plain(f.name), renamed(f.type), f.optional, f.doc) for f in fields)


@given(schemas())
def test_schema_survives_the_round_trip_through_text(schema: Schema) -> None:
    schema = Schema(plain(schema.name), renamed_fields(schema.fields), schema.version, schema.doc)
    assert from_avro(json.dumps(to_avro(schema))) == schema


def test_deepest_schema_survives_the_round_trip() -> None:
    kind: FieldType = Variant((Case("a", (Int(),)),))
    while_deeper = [List, Option, lambda of: Record((Field("x", of, not isinstance(of, Option)),))]
    for index in range(DEPTH_MAX - 2):
        kind = while_deeper[index % 3](kind)
    schema = Schema("deep", (Field("x", kind, optional=not isinstance(kind, Option)),))
    assert from_avro(to_avro(schema)) == schema


def test_schema_says_what_avro_says() -> None:
    fields = tuple(field for field in TRADE.fields if field.name not in ("kind", "leg"))
    extra = (
        Field("side", Variant((Case("BUY"), Case("SELL")))),
        Field("kind", Variant((Case("A", (Int64(),)), Case("B"))), optional=True),
        Field("leg", Option(Record((Field("child", Ref("trade"), optional=True),)))),
    )
    assert to_avro(Schema("trade", (*fields, *extra), 2, "Trades")) == {
        "type": "record",
        "name": "trade",
        "doc": "Trades",
        "ripple.version": 2,
        "fields": [
            {"name": "symbol", "type": "string"},
            {"name": "price", "type": "double"},
            {"name": "size", "type": {"type": "long", "ripple.type": "Int"}},
            {"name": "timestamp_ns", "type": "long"},
            {"name": "venue", "type": ["null", "string"], "default": None, "doc": "MIC"},
            {
                "name": "tags",
                "type": ["null", {"type": "array", "items": ["null", "string"]}],
                "default": None,
            },
            {
                "name": "raw",
                "type": ["null", {"type": "string", "ripple.type": "Opaque"}],
                "default": None,
            },
            {
                "name": "side",
                "type": {"type": "enum", "name": "trade_side", "symbols": ["BUY", "SELL"]},
            },
            {
                "name": "kind",
                "type": [
                    "null",
                    {
                        "type": "record",
                        "name": "trade_kind_A",
                        "ripple.case": "A",
                        "fields": [{"name": "arg0", "type": "long"}],
                    },
                    {"type": "record", "name": "trade_kind_B", "ripple.case": "B", "fields": []},
                ],
                "default": None,
            },
            {
                "name": "leg",
                "type": [
                    "null",
                    {
                        "type": "record",
                        "name": "trade_leg",
                        "fields": [{"name": "child", "type": ["null", "trade"], "default": None}],
                    },
                ],
            },
        ],
    }


def record(kind: Any, **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": "org.t", "fields": [{"name": "x", "type": kind, **more}]}


LEG = {"type": "record", "name": "a.Leg", "fields": [{"name": "n", "type": "int"}]}
LEG_TYPE = Record((Field("n", Int()),))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("int", Int()),
        ("float", Float()),
        ({"type": {"type": "boolean"}}, Bool()),
        ({"type": "long", "logicalType": "timestamp-nanos"}, Int64()),
        ({"type": "long", "logicalType": "local-timestamp-nanos"}, Int64()),
        ({"type": "string", "logicalType": "uuid"}, String()),
        ({"type": "int", "connect.name": "io.debezium.time.Year"}, Int()),
        (["string", "null"], Option(String())),
        (
            ["null", "string", LEG, {"type": "array", "items": "a.Leg"}],
            Option(
                Variant(
                    (
                        Case("string", (String(),)),
                        Case("Leg", (LEG_TYPE,)),
                        Case("array", (List(LEG_TYPE),)),
                    )
                )
            ),
        ),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, Variant((Case("A"),))),
        ({"type": "array", "items": "org.t"}, List(Ref("t"))),
    ],
)
def test_avro_schemas_of_other_writers_are_understood(kind: Any, expected: FieldType) -> None:
    assert from_avro(record(kind)) == Schema("t", (Field("x", expected),))


def test_null_default_makes_a_field_optional() -> None:
    schema = from_avro(record(["null", "t"], default=None, doc="next"), name="list", version=3)
    assert schema == Schema("list", (Field("x", Ref("list"), True, "next"),), 3)
    assert from_avro(record(["int", "null"], default=0)).fields == (Field("x", Option(Int())),)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ({"type": "bytes", "logicalType": "decimal", "precision": 40}, r"expressed: use up to 38"),
        ({"type": "bytes", "logicalType": "decimal"}, r"expressed: use up to 38"),
        ({"type": "fixed", "name": "f", "size": 4}, "use bytes"),
        ({"type": "map", "values": "bytes"}, "a map has texts, integers, floats or truth values"),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            "the unit 'timestamp-millis' of",
        ),
        (["null", {"type": "int", "logicalType": "date"}], "the unit 'date' of int"),
        ({"type": "int", "logicalType": "timestamp-nanos"}, "the unit 'timestamp-nanos' of int"),
        ({"type": "double", "logicalType": "celsius"}, "the unit 'celsius' of double"),
        ({"type": "long", "connect.name": "io.debezium.time.MicroTime"}, "the unit 'io.debezium"),
        ("null", "null alone"),
        (["null"], "null alone"),
        ("strng", "'strng' cannot be expressed: no such type"),
        ({"type": "array"}, "no such type"),
        (5, "no such type"),
        ({}, "no such type"),
        ([["int"], "string"], "a union right inside a union"),
        ([{"type": ["int"]}, "int"], r"cannot be expressed"),
        (["int", "int"], "two cases named 'int'"),
        ({"type": "enum", "name": "E", "symbols": []}, "a variant has no cases"),
        ({"type": "enum", "name": "E", "symbols": [1]}, "1 is no name"),
        ({"type": "enum", "symbols": ["A"]}, "None is no name"),
        ({"type": "record", "name": "R", "fields": []}, "a record has no fields"),
        ({"type": "record", "name": "R", "fields": ["x"]}, "'x' is no field"),
        ({"type": "record", "name": "t", "fields": []}, "'t' is defined twice"),
    ],
)
def test_inexpressible_type_is_refused_by_path(kind: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=rf"t\.rows\[\]: .*{message}"):
        from_avro(
            {
                "type": "record",
                "name": "t",
                "fields": [{"name": "rows", "type": {"type": "array", "items": kind}}],
            }
        )


@pytest.mark.parametrize("text", ["", "[]", '"string"', '{"type": "record"}', "[" * 100_000])
def test_malformed_document_is_refused(text: str) -> None:
    with pytest.raises(SchemaError):
        from_avro(text)


def test_document_beyond_the_limit_is_not_read() -> None:
    with pytest.raises(SchemaError, match="DOCUMENT_BYTES_MAX"):
        from_avro(" " * (document.DOCUMENT_BYTES_MAX + 1))


def test_names_that_multiply_are_bounded() -> None:
    inner: Any = "int"
    for index in range(30):
        name = f"r{index}"
        fields = [{"name": "a", "type": inner}, {"name": "b", "type": f"r{index - 1}"}]
        inner = {"type": "record", "name": name, "fields": fields[: 2 if index else 1]}
    with pytest.raises(SchemaError, match="TYPES_MAX"):
        from_avro(inner)


def test_absurd_depth_is_refused() -> None:
    node: Any = "int"
    for _ in range(5_000):
        node = {"type": ["null", node]}
    with pytest.raises(SchemaError, match="nested deeper than 48"):
        from_avro(record(node))


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (Field("a-b", Int()), r"s\.a-b: 'a-b' is no name in Avro"),
        (Field("x", Variant((Case("é"),))), r"s\.x: 'é' is no name in Avro"),
        (Field("x", List(Ref("other"))), r"s\.x\[\]: Avro cannot refer to 'other'"),
        (Field("x", Option(Option(Int()))), r"s\.x: an option of an option"),
        (Field("x", Option(Int()), optional=True), r"s\.x: an optional field of an option"),
    ],
)
def test_schema_that_avro_cannot_say_is_refused_by_path(field: Field, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        to_avro(Schema("s", (field,)))

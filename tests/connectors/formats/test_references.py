"""References between schemas are resolved: records are read as they were written."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pytest

from ripple.connectors.formats.avro_writers import understood as understood_avro
from ripple.connectors.formats.json_schema import understood as understood_json
from ripple.connectors.formats.references import whole
from ripple.connectors.record_shape import RecordShape
from ripple.core.errors import SchemaError
from ripple.model.schema.types import Field, Float, Schema, String

SHAPE = RecordShape(Schema("Trade", (Field("symbol", String()), Field("price", Float()))), {})
MONEY = {
    "type": "record",
    "name": "Money",
    "namespace": "ex",
    "fields": [{"name": "cents", "type": "long"}],
}
VENUE = {
    "type": "record",
    "name": "Venue",
    "namespace": "ex",
    "fields": [{"name": "name", "type": "string"}, {"name": "fee", "type": "ex.Money"}],
}
TRADE = {
    "type": "record",
    "name": "Trade",
    "namespace": "ex",
    "fields": [
        {"name": "symbol", "type": "string"},
        {"name": "venue", "type": ["null", "Venue"]},
        {"name": "fees", "type": {"type": "array", "items": "Money"}},
        {"name": "price", "type": "double"},
        {"name": "other", "type": "ex.Money"},
    ],
}


def others(*documents: Any) -> dict[str, str]:
    return {name: json.dumps(one) for name, one in documents}


def test_avro_types_are_defined_where_they_are_used_first() -> None:
    given = others(("ex.Venue", VENUE), ("ex.Money", MONEY))
    text = whole("AVRO", json.dumps(TRADE), given)
    named: dict[str, Any] = {}
    for one in (MONEY, VENUE, TRADE):
        parsed = fastavro.parse_schema(one, named)
    row = {
        "symbol": "A",
        "venue": {"name": "X", "fee": {"cents": 3}},
        "fees": [{"cents": 1}, {"cents": 2}],
        "price": 1.5,
        "other": {"cents": 4},
    }
    out = io.BytesIO()
    fastavro.schemaless_writer(out, parsed, row)
    alone = fastavro.parse_schema(json.loads(text))
    assert fastavro.schemaless_reader(io.BytesIO(out.getvalue()), alone) == row
    assert [field.name for field in understood_avro(text, SHAPE).fields] == ["symbol", "price"]


def test_json_schemas_are_put_where_they_are_referred_to() -> None:
    trade = {
        "type": "object",
        "properties": {
            "symbol": {"$ref": "names.json#/$defs/symbol"},
            "price": {"$ref": "#/definitions/price"},
            "venue": {"$ref": "venue.json"},
        },
        "required": ["symbol", "price"],
        "definitions": {"price": {"type": "number"}},
    }
    names = {"$defs": {"symbol": {"$ref": "#/$defs/text"}, "text": {"type": "string"}}}
    text = whole("JSON", json.dumps(trade), others(("names.json", names), ("venue.json", {})))
    found = understood_json(text, SHAPE)
    assert [(field.name, field.type) for field in found.fields] == [
        ("symbol", String()),
        ("price", Float()),
    ]


def test_schema_without_references_is_unchanged() -> None:
    assert whole("AVRO", "{ }", {}) == "{ }"


@pytest.mark.parametrize(
    ("form", "document", "why"),
    [
        ("JSON", {"$ref": "a#/nowhere"}, "leads nowhere"),
        ("JSON", {"$ref": "a"}, "more than 64 times"),
        ("PROTOBUF", {}, "PROTOBUF, which is not read"),
    ],
)
def test_error_names_an_unresolvable_reference(form: str, document: Any, why: str) -> None:
    with pytest.raises(SchemaError, match=why):
        whole(form, json.dumps(document), others(("a", {"$ref": "a"})))

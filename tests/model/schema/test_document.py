"""Importers answer any document from outside with a schema or a SchemaError."""

from __future__ import annotations

import contextlib
import copy
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripple.core.errors import SchemaError
from ripple.model.schema import Field, FieldType, List, Record, Schema, Variant
from ripple.model.schema.arrow import to_arrow
from ripple.model.schema.avro import from_avro, to_avro
from ripple.model.schema.json_schema import from_json_schema, to_json_schema
from tests.examples import EXAMPLES
from tests.model.schema.trade import TRADE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

WORDS = [
    *("type", "properties", "required", "items", "prefixItems", "anyOf", "oneOf", "allOf", "enum"),
    *("const", "$ref", "title", "description", "additionalProperties", "not", "x-ripple-type"),
    *("name", "fields", "symbols", "default", "doc", "ripple.case", "ripple.type", "values"),
    *("string", "integer", "object", "array", "null", "record", "long", "map", "#", "#/items"),
    *("trade", "ripple:x", "opaque", "Int", "ripple.version", "x-ripple-version"),
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(WORDS),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4)
    ),
    max_leaves=12,
)
WITHOUT_REF = Schema("trade", tuple(f for f in TRADE.fields if f.name != "kind"))
IMPORTERS = [
    (from_json_schema, {**to_json_schema(TRADE), "required": []}),
    (from_avro, to_avro(WITHOUT_REF)),
]


def nodes(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        yield value
        for inner in value.values() if isinstance(value, dict) else value:
            yield from nodes(inner)


@pytest.mark.parametrize(("read", "document"), IMPORTERS)
@settings(max_examples=48 * EXAMPLES)
@given(data=st.data())
def test_damaged_document_gives_a_schema_or_a_schema_error(
    read: Callable[[Any], Schema], document: dict[str, Any], data: st.DataObject
) -> None:
    damaged = copy.deepcopy(document)
    for _ in range(data.draw(st.integers(1, 3))):
        node = data.draw(st.sampled_from(list(nodes(damaged))))
        if isinstance(node, dict):
            node[data.draw(st.sampled_from([*node, *WORDS]))] = data.draw(JSON)
        else:
            node.append(data.draw(JSON))
    with contextlib.suppress(SchemaError):
        assert isinstance(read(damaged), Schema)


@pytest.mark.parametrize("read", [from_json_schema, from_avro])
@given(value=JSON)
def test_random_document_gives_a_schema_or_a_schema_error(
    read: Callable[[Any], Schema], value: Any
) -> None:
    with contextlib.suppress(SchemaError):
        assert isinstance(read(json.dumps(value)), Schema)


@pytest.mark.parametrize(
    ("kind", "message"),
    [(Record(()), r"e\.a\[\]: a record has no fields"), (Variant(()), "a variant has no cases")],
)
@pytest.mark.parametrize("write", [to_avro, to_json_schema])
def test_type_without_members_is_not_exported_since_no_importer_reads_it(
    write: Callable[[Schema], object], kind: FieldType, message: str
) -> None:
    with pytest.raises(SchemaError, match=message):
        write(Schema("e", (Field("a", List(kind)),)))


@pytest.mark.parametrize("write", [to_avro, to_json_schema, to_arrow])
def test_schema_without_fields_is_not_exported(write: Callable[[Schema], object]) -> None:
    with pytest.raises(SchemaError, match="e: a schema has no fields"):
        write(Schema("e", ()))

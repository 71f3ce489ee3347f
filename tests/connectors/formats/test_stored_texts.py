"""UUIDs and bytes in values of Avro, MessagePack and Protobuf: read, and written."""

from __future__ import annotations

import io
import json
import uuid
from typing import Any

import fastavro
import msgspec
import pyarrow as pa
import pytest

import ripple as rp
from ripple.connectors.formats.avro import AvroValues
from ripple.connectors.formats.formats import values_of
from ripple.connectors.formats.framed import head_of
from ripple.connectors.kafka.row_values import row_values
from ripple.connectors.record_shape import RecordShape
from ripple.connectors.transforms.forms import forms_of
from ripple.model.records import checks_of, schema_of
from tests.connectors.formats.messages import ONE, message_of
from tests.connectors.formats.registries import OneSchema, no_registry

A, RAW = uuid.UUID(int=0xABCDEF << 64), b"\x00\xff\n"


@rp.record
class Request:
    id: uuid.UUID
    body: bytes | None = rp.field(format="hex", default=None)
    of: uuid.UUID | None = None


WANTED = [{"id": str(A), "body": RAW.hex(), "of": None}]
CHAIN = forms_of(RecordShape(schema_of(Request), checks_of(Request)))


def read(values: Any, given: list[bytes]) -> tuple[list[Any], list[str]]:
    found = CHAIN.batch(values.batch(pa.array(given, pa.binary())))
    return found.records.to_pylist(), [bad.cause for bad in found.rejected]


@pytest.mark.parametrize("is_slow", [False, True])
def test_avro_has_both(is_slow: bool) -> None:
    registry: Any = OneSchema()
    requests = rp.Pipeline("n").source("requests", Request).partition("p", key="id")
    output = requests.fold("f", body=rp.max("body"), of=rp.max("of")).sink("o").plan().output("o")
    writer = row_values("avro", output, "kafka:x", registry, "o-value")
    assert '"type": "string", "logicalType": "uuid"' in registry.text
    rows = [{"id": str(A), "body": RAW, "of": None}]
    kinds = pa.schema({"id": pa.string(), "body": pa.binary(), "of": pa.string()})
    (value,) = writer.values(pa.RecordBatch.from_pylist(rows, kinds)).to_pylist()
    schema = fastavro.parse_schema(json.loads(registry.text))
    decoded: Any = fastavro.schemaless_reader(io.BytesIO(value[5:]), schema)
    assert (decoded["id"], decoded["body"]) == (A, RAW)
    assert read(AvroValues(CHAIN.needed, registry, is_slow=is_slow), [value]) == (WANTED, [])


def test_avro_of_16_bytes_is_a_uuid() -> None:
    registry: Any = OneSchema()
    fixed = {"type": "fixed", "name": "u", "size": 16, "logicalType": "uuid"}
    fields = [{"name": "id", "type": fixed}, {"name": "body", "type": ["null", "bytes"]}]
    registry.text = json.dumps({"type": "record", "name": "R", "fields": fields})
    value = head_of(7) + A.bytes + b"\x02\x06" + RAW
    empty = head_of(7) + A.bytes + b"\x00"
    assert read(AvroValues(CHAIN.needed, registry), [value, empty]) == (
        [*WANTED, WANTED[0] | {"body": None}], [])  # fmt: skip


def test_messagepack_has_both() -> None:
    values = values_of("msgpack", CHAIN.needed, no_registry, {})
    given = [
        {"id": str(A).upper(), "body": RAW},
        {"id": A.bytes, "body": RAW.hex()},
        {"id": "x", "body": RAW},
        {"id": b"x", "body": RAW},
        {"id": str(A), "body": 5},
    ]
    rows, causes = read(values, [msgspec.msgpack.encode(one) for one in given])
    assert rows == WANTED * 2
    assert causes == [
        "id is no UUID such as 123e4567-e89b-12d3-a456-426614174000",
        "id is not a UUID",
        "body is not bytes",
    ]


def test_protobuf_has_both(tmp_path: Any) -> None:
    fields = {"id": (9, ONE), "body": (12, ONE), "of": (12, ONE)}
    make, options = message_of(tmp_path, "Request", fields)
    values = values_of("protobuf", CHAIN.needed, no_registry, options=options)
    given = [make(id=str(A), body=RAW, of=A.bytes), make(id=str(A), body=RAW, of=b"x")]
    rows, causes = read(values, [one.SerializeToString() for one in given])
    assert rows == [WANTED[0] | {"of": str(A)}]
    assert causes == ["of is not a UUID"]

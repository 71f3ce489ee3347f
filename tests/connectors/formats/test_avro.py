"""Avro records in the frame of a registry: read in columns as fastavro reads them, one by one."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripple.connectors.coercion import TYPED_TIME
from ripple.connectors.formats.avro import LEFT_OVER, AvroValues
from ripple.connectors.formats.avro_writers import understood, writer_of
from ripple.connectors.formats.framed import NOT_FRAMED, head_of, unreadable
from ripple.connectors.formats.json_schema import JsonSchemaValues
from ripple.connectors.formats.json_schema import understood as understood_json
from ripple.connectors.formats.registry import Registered
from ripple.connectors.kafka.row_values import FlatValues
from ripple.connectors.record_shape import RecordShape
from ripple.core.errors import SchemaError
from ripple.core.row_ops import OP, OP_REMOVE, OP_SET
from ripple.model.batch import Batch
from ripple.model.schema.avro import to_avro
from ripple.model.schema.avro_times import in_nanoseconds, without_units
from ripple.model.schema.checks import Checks
from ripple.model.schema.json_schema import to_json_schema
from ripple.model.schema.nested import flattened
from ripple.model.schema.types import Bool, Field, Float, Int, Int64, List, Record, Schema, String
from tests.examples import EXAMPLES, SAMPLED

TRADE = Schema(
    "Trade",
    (
        Field("symbol", String()),
        Field("price", Float()),
        Field("size", Int()),
        Field("is_buy", Bool(), optional=True),
        Field("venue", String(), optional=True),
    ),
)
SHAPE = RecordShape(TRADE, {"size": Checks(gt=0)})
ROW = {"symbol": "A", "price": 1.5, "size": 2, "is_buy": None, "venue": None}


class Held:
    """Schemas by id, in memory: what a registry is to those who decode."""

    def __init__(self, *documents: object, form: str = "AVRO") -> None:
        self.asked: list[int] = []
        self._held = [Registered(n, form, json.dumps(one)) for n, one in enumerate(documents, 1)]

    def schema(self, number: int) -> Registered | None:
        self.asked.append(number)
        return self._held[number - 1] if 0 < number <= len(self._held) else None


def framed(document: Any, row: dict[str, Any], number: int = 1) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(document), row)
    return head_of(number) + out.getvalue()


def told(batch: Batch) -> tuple[dict[int, dict[str, Any]], dict[int, str]]:
    assert batch.span == len(batch.offsets()) + len(batch.rejected)
    batch.records.validate(full=True)
    rows = dict(zip(batch.offsets().tolist(), batch.records.to_pylist(), strict=True))
    return rows, {bad.offset: bad.reason for bad in batch.rejected}


def read(registry: Held, values: list[bytes], shape: RecordShape = SHAPE) -> Any:
    """Read in columns; it must be what is read one by one."""
    column = pa.array(values, pa.binary())
    fast, slow = (
        told(AvroValues(shape, registry, is_slow=is_slow).batch(column))  # type: ignore[arg-type]
        for is_slow in (False, True)
    )
    assert fast[0] == slow[0]
    assert fast[1].keys() == slow[1].keys()
    return fast


def test_records_of_several_writers_are_read_by_the_names_of_fields() -> None:
    newer = {
        "type": "record",
        "name": "Trade",
        "fields": [
            {"name": "note", "type": ["string", "null"]},
            {"name": "size", "type": "int"},
            {"name": "fee", "type": {"type": "bytes", "logicalType": "decimal", "precision": 4}},
            {"name": "price", "type": "float"},
            {"name": "symbol", "type": "string"},
            {"name": "is_buy", "type": ["boolean", "null"]},
        ],
    }
    fields = {"note": "x", "size": 3, "price": 2.5, "symbol": "B", "is_buy": True, "fee": b"\1"}
    plain = json.loads(
        json.dumps(newer).replace('"logicalType": "decimal", "precision": 4', '"a": 1')
    )
    values = [framed(to_avro(TRADE), ROW), framed(plain, fields, 2), framed(to_avro(TRADE), ROW)]
    rows, refused = read(Held(to_avro(TRADE), plain), values)
    second = {"symbol": "B", "price": 2.5, "size": 3, "is_buy": True, "venue": None}
    assert (rows, refused) == ({0: ROW, 1: second, 2: ROW}, {})
    assert writer_of(Registered(1, "AVRO", json.dumps(newer)), SHAPE).fields is not None


def test_a_schema_that_a_reader_of_avro_refuses_is_refused_before_it_is_read() -> None:
    document = to_avro(TRADE)
    document["fields"][0]["type"] = {"type": {"type": "string"}}  # type: ignore[call-overload,index]
    found = Registered(1, "AVRO", json.dumps(document))
    why = unreadable(found, "AVRO", SHAPE, understood)
    assert why.startswith("it is no Avro schema: ")
    assert writer_of(found, SHAPE).why_not == f"schema 1: {why}"


def test_invalid_values_are_rejected_and_the_others_read() -> None:
    good = framed(to_avro(TRADE), ROW)
    values = [b"", b"\0\0\0", b"{}{}{}", good[:-1], good + b"x", good, head_of(9) + b"abc"]
    text = good.replace(b"\x02A", b"\x02\xff")
    low = framed(to_avro(TRADE), {**ROW, "size": 0})
    rows, refused = read(Held(to_avro(TRADE)), [*values, text, low])
    assert rows == {5: ROW}
    assert refused[0] == refused[1] == refused[2] == NOT_FRAMED
    assert refused[3] == "venue is cut off, or no value"
    assert refused[4] == LEFT_OVER
    assert refused[6] == "the registry has no schema 9"
    assert refused[7] == "symbol is not UTF-8"
    assert "size" in refused[8]


def test_a_schema_is_asked_for_once() -> None:
    registry = Held(to_avro(TRADE))
    values = AvroValues(SHAPE, registry)  # type: ignore[arg-type]
    for _ in range(3):
        values.batch(pa.array([framed(to_avro(TRADE), ROW)] * 2))
    assert registry.asked == [1]


def test_a_writer_with_more_in_its_records_is_read_one_by_one() -> None:
    nested = {
        "type": "record",
        "name": "Trade",
        "fields": [
            {"name": "tags", "type": {"type": "array", "items": "string"}},
            *to_avro(TRADE)["fields"],  # type: ignore[misc]
        ],
    }
    assert writer_of(Registered(1, "AVRO", json.dumps(nested)), SHAPE).fields is None
    rows, refused = read(Held(nested), [framed(nested, {**ROW, "tags": ["x", "y"]})])
    assert (rows, refused) == ({0: ROW}, {})


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"price": "string"}, ("price", "string", "Float")),
        ({"size": ["null", "long"]}, ("size",)),
        ({"symbol": None}, ("symbol",)),
        ({"price": {"type": "map", "values": "long"}}, ("price", "Dict")),
    ],
)
def test_a_schema_that_does_not_fit_names_the_field(changed: Any, said: tuple[str, ...]) -> None:
    document: Any = to_avro(TRADE)
    fields = [{**one, "type": changed.get(one["name"], one["type"])} for one in document["fields"]]
    document = {**document, "fields": [one for one in fields if one["type"] is not None]}
    why = unreadable(Registered(1, "AVRO", json.dumps(document)), "AVRO", SHAPE, understood)
    for word in said:
        assert word.lower() in why.lower(), why
    refused = told(
        AvroValues(SHAPE, Held(document)).batch(pa.array([head_of(1) + b"x"]))  # type: ignore[arg-type]
    )[1]
    assert refused[0].startswith("schema 1: ")


TEXTS = st.text(st.characters(codec="utf-8"), max_size=5)
NUMBERS = st.integers(-(1 << 63), (1 << 63) - 1)
KINDS: dict[str, Any] = {
    "long": NUMBERS,
    "int": st.integers(-(1 << 31), (1 << 31) - 1),
    "double": st.floats(allow_nan=False),
    "float": st.floats(width=32, allow_nan=False),
    "boolean": st.booleans(),
    "string": TEXTS,
}
READERS = {"long": Int(), "int": Int(), "double": Float(), "float": Float(), "boolean": Bool()}


@st.composite
def written(draw: Any) -> tuple[Any, RecordShape, list[dict[str, Any]]]:
    fields, members, strategies = [], [], {}
    for number in range(draw(st.integers(1, 5))):
        kind, name = draw(st.sampled_from(sorted(KINDS))), f"f{number}"
        null = draw(st.sampled_from([None, 0, 1]))
        union: Any = kind if null is None else ["null", kind] if null == 0 else [kind, "null"]
        fields.append({"name": name, "type": union})
        strategies[name] = KINDS[kind] if null is None else st.none() | KINDS[kind]
        if draw(st.booleans()) or not members:
            members.append(Field(name, READERS.get(kind, String()), optional=null is not None))
    rows = draw(st.lists(st.fixed_dictionaries(strategies), max_size=6))
    document = {"type": "record", "name": "R", "fields": fields}
    return document, RecordShape(Schema("R", tuple(members))), rows


@settings(max_examples=60 * EXAMPLES // SAMPLED, deadline=None)
@given(written(), st.data())
def test_columns_are_what_fastavro_reads(case: Any, data: Any) -> None:
    document, shape, rows = case
    values = [framed(document, row) for row in rows]
    names = [member.name for member in shape.schema.fields]
    found, refused = read(Held(document), values, shape)
    assert refused == {}
    assert list(found.values()) == [{name: row[name] for name in names} for row in rows]
    for number, value in enumerate(values):  # bytes that were damaged are never more than refused
        at = data.draw(st.integers(5, len(value)))
        values[number] = value[:at] + data.draw(st.binary(max_size=3)) + value[at + 1 :]
    damaged = AvroValues(shape, Held(document)).batch(pa.array(values, pa.binary()))  # type: ignore[arg-type]
    told(damaged)


COLUMNS = {
    "symbol": (String(), TEXTS | st.text(min_size=30, max_size=300)),
    "rows": (Int(), NUMBERS | st.integers(-200, 300)),
    "vwap": (Float(), st.floats(allow_nan=False)),
    "is_open": (Bool(), st.booleans()),
}
FIELDS = tuple(
    Field(name, kind, optional=name in ("vwap", "is_open")) for name, (kind, _) in COLUMNS.items()
)


@settings(max_examples=40 * EXAMPLES // SAMPLED, deadline=None)
@given(
    st.lists(
        st.fixed_dictionaries(
            {
                name: (st.none() | values if name in ("vwap", "is_open") else values)
                for name, (_, values) in COLUMNS.items()
            }
            | {OP: st.sampled_from([OP_SET, OP_REMOVE])}
        ),
        max_size=6,
    ),
    st.integers(0, 2),
)
def test_rows_are_written_as_fastavro_and_msgspec_read_them(rows: Any, skipped: int) -> None:
    schema = pa.schema(
        [("symbol", pa.string()), (OP, pa.int8()), ("rows", pa.int64()), ("vwap", pa.float64())]
    ).append(pa.field("is_open", pa.bool_()))
    changes = pa.RecordBatch.from_pylist(rows, schema).slice(skipped)
    document = fastavro.parse_schema(to_avro(Schema("out", FIELDS)))
    avro = FlatValues(FIELDS, "t", avro=True, head=head_of(7)).values(changes)
    packed = FlatValues(FIELDS, "t", avro=False).values(changes)
    avro.validate(full=True)
    for row, one, other in zip(rows[skipped:], avro.to_pylist(), packed.to_pylist(), strict=True):
        if row[OP] == OP_REMOVE:
            assert one is other is None
            continue
        expected = {name: row[name] for name in COLUMNS}
        assert one[:5] == b"\0\0\0\0\7"
        assert fastavro.schemaless_reader(io.BytesIO(one[5:]), document) == expected
        assert msgspec.msgpack.decode(other) == expected
        assert msgspec.msgpack.encode(expected) == other


def test_json_in_the_frame_of_a_registry_is_held_to_the_pipelines_fields() -> None:
    document = {**to_json_schema(TRADE), "additionalProperties": False}
    whole = {**document, "properties": {**document["properties"], "extra": {"type": "array"}}}  # type: ignore[dict-item]
    other = {"type": "object", "properties": {"symbol": {"type": "integer"}}}
    registry = Held(whole, other, form="JSON")
    good = head_of(1) + json.dumps(ROW).encode()
    values = JsonSchemaValues(SHAPE, registry)  # type: ignore[arg-type]
    batch = values.batch(pa.array([good, head_of(2) + b"{}", b"{}", head_of(1) + b"{", good]))
    rows, refused = told(batch)
    assert rows == {0: ROW, 4: ROW}
    assert refused[1].startswith("schema 2: ")
    assert "symbol" in refused[1]
    assert refused[2] == NOT_FRAMED
    assert 3 in refused
    assert np.array_equal(batch.offsets(), [0, 4])


def test_rows_that_are_no_flat_columns_are_refused_by_name() -> None:
    from ripple.core.errors import OutputError

    rows = List(Record((Field("tag", String()),)))
    with pytest.raises(OutputError, match="'tags' is a List"):
        FlatValues((Field("tags", rows),), "kafka:b/t", avro=True)


MOMENT_NS = 1_708_905_600_123_456_000
DATE_NS = 1_708_905_600_000_000_000
EVENT = RecordShape(
    Schema("E", (Field("k", String()), Field("t", Int64(), optional=True), Field("u", String())))
)


def event_schema(kind: Any, *, is_flat: bool) -> dict[str, Any]:
    more = [] if is_flat else [{"name": "tags", "type": {"type": "array", "items": "string"}}]
    uuid = {"type": "string", "logicalType": "uuid"}
    fields = [
        {"name": "k", "type": "string"},
        {"name": "t", "type": kind},
        {"name": "u", "type": uuid},
    ]
    return {"type": "record", "name": "E", "fields": [*fields, *more]}


MOMENTS = [
    {"type": "long", "logicalType": f"timestamp-{unit}"} for unit in ("millis", "micros", "nanos")
]


@pytest.mark.parametrize("is_flat", [True, False])
@pytest.mark.parametrize(
    ("kind", "number", "expected"),
    [
        (MOMENTS[0], MOMENT_NS // 10**6, 123_000_000),
        (MOMENTS[1], MOMENT_NS // 10**3, 123_456_000),
        (MOMENTS[2], MOMENT_NS, 123_456_000),
        (
            {"type": "long", "logicalType": "local-timestamp-millis"},
            MOMENT_NS // 10**6,
            123_000_000,
        ),
        (
            {"type": "long", "logicalType": "local-timestamp-micros"},
            MOMENT_NS // 10**3,
            123_456_000,
        ),
        ({"type": "int", "logicalType": "date"}, DATE_NS // 10**9 // 86_400, 0),
        ({"type": "long", "connect.name": "io.debezium.time.Timestamp"}, DATE_NS // 10**6, 0),
        ("long", DATE_NS, 0),
    ],
)
def test_moments_are_nanoseconds_whatever_their_unit(
    kind: Any, number: int, expected: int, is_flat: bool
) -> None:
    far = (1 << 31) - 1 if "int" in str(kind) else (1 << 63) - 1
    for one in (kind, ["null", kind], [kind]):
        document = event_schema(one, is_flat=is_flat)
        raw = without_units(document)
        row = {"k": "a", "u": "x", "tags": ["q"]}
        values = [framed(raw, {**row, "t": t}) for t in (number, -number, far)]
        if one == ["null", kind]:
            values.append(framed(raw, {**row, "t": None}))
        rows, refused = read(Held(document), values, EVENT)
        assert rows[0] == {"k": "a", "t": DATE_NS + expected, "u": "x"}
        assert rows[1]["t"] == -DATE_NS - expected
        fits = kind == "long" or "nanos" in str(kind)
        assert refused == ({} if fits else {2: "t does not fit in 64 bits"})
        assert all(rows[at]["t"] is None for at in range(3, len(values)))


@pytest.mark.parametrize(
    "kind",
    [
        {"type": "int", "logicalType": "time-millis"},
        {"type": "long", "logicalType": "time-micros"},
        {"type": "int", "logicalType": "timestamp-millis"},
        {"type": "bytes", "logicalType": "decimal", "precision": 9},
        {"type": "fixed", "name": "D", "size": 12, "logicalType": "duration"},
    ],
)
def test_another_unit_is_refused_by_name_where_it_is_read(kind: Any) -> None:
    document = event_schema(["null", kind], is_flat=True)
    assert unreadable(Registered(1, "AVRO", json.dumps(document)), "AVRO", EVENT, understood)
    found = AvroValues(EVENT, Held(document)).batch(  # type: ignore[arg-type]
        pa.array([framed(without_units(document), {"k": "a", "t": None, "u": "x"})])
    )
    assert "E.t" in told(found)[1][0]
    other = RecordShape(Schema("E", (Field("k", String()),)))
    rows, refused = read(
        Held(document), [framed(without_units(document), {"k": "a", "t": None, "u": ""})], other
    )
    assert (rows, refused) == ({0: {"k": "a"}}, {})


@pytest.mark.parametrize("kind", [{"type": "int", "logicalType": "date"}, *MOMENTS])
def test_a_moment_is_no_number_of_a_unit(kind: Any) -> None:
    in_ms = RecordShape(EVENT.schema, units=frozenset({"t"}))
    for one in (kind, ["null", kind], [kind]):
        document = event_schema(one, is_flat=True)
        raw = without_units(document)
        rows, refused = read(Held(document), [framed(raw, {"k": "a", "t": 1, "u": ""})], in_ms)
        assert (rows, refused) == ({}, {0: f"schema 1: field 't' is {TYPED_TIME}"})
    ns = in_nanoseconds(kind)[1]
    for one in ({"type": kind}, {"type": ["null", {"type": kind}]}):
        plain = json.loads(json.dumps(one).replace(json.dumps(kind), '"long"'))
        assert in_nanoseconds(one) == (plain, ns)


def test_a_unit_of_kafka_connect_is_refused_in_json_as_well() -> None:
    moment = {"type": "integer", "title": "org.apache.kafka.connect.data.Timestamp"}
    document = {"type": "object", "properties": {"t": {"oneOf": [{"type": "null"}, moment]}}}
    with pytest.raises(SchemaError, match=r"t: the unit 'org.apache"):
        understood_json(json.dumps(document), EVENT)


# Records in records.

CLICK = RecordShape(
    flattened(
        Schema(
            "Click",
            (
                Field("actor", Record((Field("id", Int()), Field("login", String())))),
                Field("org", Record((Field("name", String()),)), optional=True),
                Field("at", Int64()),
            ),
        )
    )
)
PERSON = {
    "type": "record",
    "name": "Person",
    "fields": [
        {"name": "login", "type": "string"},
        {"name": "url", "type": ["null", "string"]},
        {"name": "id", "type": "long"},
    ],
}
MILLIS = {"type": "long", "logicalType": "timestamp-millis"}


def click_of(org: Any) -> dict[str, Any]:
    fields = [
        {"name": "sender", "type": PERSON},
        {"name": "actor", "type": "Person"},
        {"name": "org", "type": org},
        {"name": "at", "type": MILLIS},
    ]
    return {"type": "record", "name": "Click", "fields": fields}


def test_values_of_records_in_records_are_read_by_path() -> None:
    of_name = {"type": "record", "name": "Org", "fields": [{"name": "name", "type": "string"}]}
    whole, perhaps = click_of(of_name), click_of(["null", of_name])
    ada, bob = ({"login": one, "url": None, "id": at} for at, one in enumerate(["ada", "bob"]))
    values = [
        framed(without_units(whole), {"sender": bob, "actor": ada, "org": {"name": "x"}, "at": 2}),
        framed(without_units(perhaps), {"sender": bob, "actor": ada, "org": None, "at": 3}, 2),
        framed(
            without_units(perhaps), {"sender": ada, "actor": bob, "org": {"name": "y"}, "at": 4}, 2
        ),
    ]
    rows, refused = read(Held(whole, perhaps), [*values, values[0][:-1]], CLICK)
    names = ["actor.id", "actor.login", "org.name", "at"]
    expected = [(0, "ada", "x", 2_000_000), (0, "ada", None, 3_000_000), (1, "bob", "y", 4_000_000)]
    assert [tuple(row[name] for name in names) for row in rows.values()] == expected
    assert list(refused) == [3]
    # A record of its own bytes is read in columns; a union is not.
    texts = [json.dumps(one) for one in (whole, perhaps)]
    fields = [writer_of(Registered(1, "AVRO", text), CLICK).fields for text in texts]
    assert [one is not None for one in fields] == [True, False]


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("string", "org.name"),
        ({"type": "array", "items": "string"}, "org.name"),
        (
            {"type": "record", "name": "Org", "fields": [{"name": "name", "type": "long"}]},
            "org.name",
        ),
    ],
)
def test_another_type_where_a_record_is_meant_is_refused_by_path(kind: Any, reason: str) -> None:
    required = RecordShape(
        flattened(Schema("Click", (Field("org", Record((Field("name", String()),))),)))
    )
    document = {"type": "record", "name": "Click", "fields": [{"name": "org", "type": kind}]}
    why = unreadable(Registered(1, "AVRO", json.dumps(document)), "AVRO", required, understood)
    assert reason in why, why


def test_objects_of_a_json_schema_are_compared_by_path() -> None:
    inner = {"type": "object", "properties": {"id": {"type": "integer"}, "more": {"type": "array"}}}
    document = {"type": "object", "properties": {"actor": inner, "other": {"type": "array"}}}
    shape = RecordShape(
        flattened(Schema("Click", (Field("actor", Record((Field("id", Int(), True),)), True),)))
    )
    objects = JsonSchemaValues(shape, Held(document, form="JSON"))  # type: ignore[arg-type]
    values = [head_of(1) + b'{"actor": {"id": 5}}', head_of(1) + b'{"actor": 5}']
    rows, refused = told(objects.batch(pa.array(values, pa.binary())))
    assert (rows, refused) == ({0: {"actor.id": 5}}, {1: "actor is not a record"})
    text = RecordShape(Schema("Click", (Field("actor.id", String(), True),)))
    found = Registered(1, "JSON", json.dumps(document))
    assert "actor.id" in unreadable(found, "JSON", text, understood_json)

"""Records of a topic as changes of a table: values are rows, record keys name deleted ones."""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import json
import uuid
from functools import partial
from typing import Annotated, Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import msgpack

import ripple as rp
from ripple.connectors.formats.avro import AvroValues
from ripple.connectors.formats.avro_objects import AvroObjects
from ripple.connectors.formats.csv import CsvValues
from ripple.connectors.formats.framed import head_of
from ripple.connectors.formats.json import JsonValues
from ripple.connectors.formats.msgpack import MsgpackValues
from ripple.connectors.formats.record_keys import RecordKeys
from ripple.connectors.formats.table_changes import NO_KEY, TableValues
from ripple.connectors.record_shape import RecordShape
from ripple.connectors.transforms.chain import Chain
from ripple.connectors.transforms.forms import forms_of
from ripple.core.errors import InputError
from ripple.model.keys.partitioner import key_bytes
from ripple.model.pipeline.nodes import DELETED, SourceSpec
from ripple.model.schema.avro import to_avro
from ripple.model.schema.columns import records_of
from ripple.model.schema.types import Bool, Field, Int, String
from ripple.world.broker import Read, Record, Records, Refusal
from tests.connectors.formats.test_avro import Held, framed
from tests.examples import EXAMPLES, SAMPLED


@rp.record(version=1)
class Item:
    id: int
    name: str
    price: float = rp.field(gt=0)
    gone: bool | None


def spec(**options: Any) -> SourceSpec:
    return rp.Pipeline("p").table("items", Item, **{"key": "id", **options}).sink("o").plan().source


def table(form: str = "bytes", values: Any = JsonValues, **options: Any) -> TableValues:
    source = spec(**options)
    assert source.table is not None
    return TableValues(values(RecordShape.of(source)), source.table, form)  # type: ignore[arg-type]


def read(*pairs: tuple[bytes | None, Any], next_offset: int | None = None, refused=()) -> Read:
    values = [json.dumps(v).encode() if isinstance(v, dict) else v for _, v in pairs]
    records = Records.of([Record(key, v) for (key, _), v in zip(pairs, values, strict=True)])
    end = 10 + len(pairs) if next_offset is None else next_offset
    return Read(np.arange(10, 10 + len(pairs)), records, end, refused)


def told(changes: TableValues, given_: Read) -> tuple[dict[int, Any], dict[int, str]]:
    """Return what became of each offset: (key, the name) or (key, None) for a deletion; why not."""
    batch = changes.changes(given_, "items/0")
    batch.records.validate(full=True)
    assert batch.span == given_.next_offset - 10
    rows = zip(batch.offsets().tolist(), batch.records.to_pylist(), strict=True)
    mark = spec().table.deleted if DELETED in batch.records.schema.names else "gone"  # type: ignore[union-attr]
    found = {at: (row["id"], None if row[mark] else row["name"]) for at, row in rows}
    return found, {bad.offset: bad.reason for bad in batch.rejected}


def long(number: int) -> bytes:
    return number.to_bytes(8, "big", signed=True)


ROW = {"id": 7, "name": "x", "price": 1.5}


@pytest.mark.parametrize("options", [{}, {"deleted": "gone"}])
def test_a_record_without_a_value_deletes_the_row_of_its_key(options: dict[str, Any]) -> None:
    given_ = read((long(7), ROW), (long(7), None), (None, None), (b"abc", None), (None, ROW))
    assert told(table(**options), given_) == (
        {10: (7, "x"), 11: (7, None), 14: (7, "x")},
        {12: NO_KEY, 13: "the record key has no integer as id"},
    )


def test_values_that_are_no_rows_are_rejected_with_their_bytes() -> None:
    given_ = read(
        (long(7), b"no"), (long(8), None), next_offset=14, refused=[Refusal(13, "damaged", b"raw")]
    )
    batch = table().changes(given_, "items/0")
    assert [(bad.offset, bad.raw) for bad in batch.rejected] == [(10, b"no"), (13, b"raw")]
    assert batch.offsets().tolist() == [11]
    nothing = table().changes(read(next_offset=30), "items/0")
    assert (nothing.records.num_rows, nothing.next_offset) == (0, 30)
    assert nothing.records.schema == batch.records.schema


def test_rows_of_csv_and_deletions_are_changes_together() -> None:
    given_ = read((long(1), b"1,a,2.5,"), (long(2), None), (long(3), b"3,b,1.0,false"))
    assert told(table(values=CsvValues), given_)[0] == {10: (1, "a"), 11: (2, None), 12: (3, "b")}


def test_rows_of_other_formats_and_deletions_are_changes_together() -> None:
    document = to_avro(rp.schema_of(Item))
    avro = partial(AvroValues, registry=Held(document))  # type: ignore[arg-type]
    row = {**ROW, "gone": None}
    for values, value in ((avro, framed(document, row)), (MsgpackValues, msgpack.encode(row))):
        given_ = read((long(7), value), (long(7), None), (long(8), b"no"))
        rows, refused = told(table(values=values), given_)
        assert (rows, [*refused]) == ({10: (7, "x"), 11: (7, None)}, [12])


@pytest.mark.parametrize("wrapped", [False, True])
def test_envelopes_are_rows_and_deletions_of_their_record_keys(wrapped: bool) -> None:
    def said(content: Any) -> bytes:
        whole = {"schema": {"type": "struct"}, "payload": content} if wrapped else content
        return json.dumps(whole).encode()

    key, other = said({"id": 7}), said({"id": 8})
    row = {**ROW, "more": {"nested": [1]}}
    given_ = read(
        (key, said({"op": "r", "before": None, "after": row, "source": {}})),
        (key, said({"op": "u", "before": 5, "after": {**row, "name": "y"}})),
        (key, said({"op": "d", "before": {"id": 9}, "after": None})),
        (key, None),
        (other, said({"op": "c", "after": {"name": "z", "price": 2}})),
    )
    assert told(table("json", format="debezium"), given_) == (
        {10: (7, "x"), 11: (7, "y"), 12: (7, None), 13: (7, None), 14: (8, "z")},
        {},
    )


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (b'{"id":7}', b"[", "the value is not JSON, as an envelope of Debezium is"),
        (b'{"id":7}', b"[" * 100_000, "the value is not JSON, as an envelope of Debezium is"),
        (b'{"id":7}', b"[]", "the value has no op, as an envelope of Debezium has"),
        (b'{"id":7}', ROW, "the value has no op, as an envelope of Debezium has"),
        (b'{"id":7}', {"op": "m"}, "the op 'm' of the envelope is none of c, r, u, d and t"),
        (b'{"id":7}', {"op": "c"}, "the envelope has op 'c' and no row in after"),
        (b'{"id":7}', {"op": "u", "after": None}, "the envelope has op 'u' and no row in after"),
        (None, {"op": "c", "after": ROW}, "the record has no key, by which Debezium names its row"),
        (None, None, "the record has no key, by which Debezium names its row"),
        (b"7x", {"op": "d"}, "the record key is not JSON"),
        (b'{"no":7}', {"op": "d"}, "the record key has no field id"),
        (b'{"id":7,"b":1,"a":2}', {"op": "d"}, "the record key has other fields than key=: a, b"),
        (b'{"id":null}', {"op": "d"}, "the record key has no integer as id"),
        (b'{"id":7.5}', {"op": "d"}, "the record key has no integer as id"),
        (b'{"id":9223372036854775808}', None, "the record key has no integer as id"),
        (b'{"id":7}', {"op": "c", "after": {"name": 5, "price": 1}}, "name is not text"),
        (
            b'{"id":7}',
            {"op": "u", "after": {**ROW, "name": "__debezium_unavailable_value"}},
            "name is not in the envelope, as a large value of PostgreSQL that did not change: the "
            "table there needs REPLICA IDENTITY FULL",
        ),
    ],
)
def test_an_envelope_that_is_none_is_a_dead_letter(key: Any, value: Any, reason: str) -> None:
    rows, refused = told(table("json", format="debezium"), read((key, value)))
    assert (rows, refused) == ({}, {10: reason})


VALUE = {
    "type": "record",
    "name": "Value",
    "fields": [
        {"name": "id", "type": "int"},
        {"name": "name", "type": ["null", "string"], "default": None},
        {"name": "price", "type": ["null", "double"], "default": None},
        {"name": "more", "type": {"type": "array", "items": "string"}},
        {
            "name": "since",
            "type": ["null", {"type": "long", "connect.name": "io.debezium.time.MicroTimestamp"}],
        },
    ],
}
ENVELOPE = {
    "type": "record",
    "name": "Envelope",
    "namespace": "shop.public.items",
    "fields": [
        {"name": "before", "type": ["null", VALUE], "default": None},
        {"name": "after", "type": ["null", "Value"], "default": None},
        {"name": "op", "type": "string"},
        {"name": "ts_ms", "type": ["null", "long"], "default": None},
    ],
}
KEY = {
    "type": "record",
    "name": "Key",
    "namespace": "shop.public.items",
    "fields": [{"name": "id", "type": "int"}],
}


@rp.record(version=1)
class Dated:
    id: int
    name: str
    price: float | None
    since: int


def in_avro(*documents: Any) -> TableValues:
    source = rp.Pipeline("p").table("items", Dated, key="id", format="debezium")
    shape = RecordShape.of(source.sink("o").plan().source)
    assert shape.table is not None
    registry: Any = Held(*documents)
    keys, envelopes = AvroObjects(registry).read, AvroObjects(registry, shape).read
    return TableValues(JsonValues(shape), shape.table, "avro", keys=keys, envelopes=envelopes)


def changed(op: str, key: int, after: dict[str, Any] | None = None) -> tuple[bytes, bytes]:
    said = {"before": None, "after": after, "op": op, "ts_ms": 5}
    return framed(KEY, {"id": key}, 2), framed(ENVELOPE, said)


def test_envelopes_in_avro_are_rows_and_deletions_of_their_record_keys() -> None:
    row = {"id": 7, "name": "x", "price": None, "more": ["a"], "since": 5}
    changes = in_avro(ENVELOPE, KEY).changes(
        read(
            changed("r", 7, row),
            changed("u", 8, {**row, "id": 8, "price": 0.1}),
            changed("d", 7),
            (framed(KEY, {"id": 8}, 2), None),
        ),
        "items/0",
    )
    assert not changes.rejected
    assert changes.records.to_pylist() == [
        {"id": 7, "name": "x", "price": None, "since": 5000, DELETED: False},
        {"id": 8, "name": "x", "price": 0.1, "since": 5000, DELETED: False},
        {"id": 7, "name": None, "price": None, "since": None, DELETED: True},
        {"id": 8, "name": None, "price": None, "since": None, DELETED: True},
    ]


def test_what_is_no_envelope_in_avro_is_a_dead_letter_with_its_reason() -> None:
    row = {"id": 7, "name": "x", "price": None, "more": [], "since": 5}
    key, whole = changed("c", 7, row)
    units = {"name": "since", "type": {"type": "long", "logicalType": "time-micros"}}
    wrong = {**ENVELOPE, "fields": [{"name": "after", "type": {**VALUE, "fields": [units]}}]}
    other: Any = {"type": "record", "name": "Other", "fields": [{"name": "no", "type": "int"}]}
    alone = {**ENVELOPE, "fields": ENVELOPE["fields"][2:]}
    pairs = [
        (key, b"{}"),
        (key, whole[:-3]),
        (key, whole + b"x"),
        (key, framed(ENVELOPE, {"op": "c"}, 9)),
        (key, framed(other, {"no": 1}, 3)),
        (key, framed(alone, {"op": "c"}, 4)),
        (key, head_of(5) + b"x"),
        (key, framed(ENVELOPE, {"op": "x"})),
        (key, framed(ENVELOPE, {"op": "c"})),
        (b"7", whole),
        (framed(other, {"no": 1}, 3), whole),
        (None, whole),
    ]
    changes = in_avro(ENVELOPE, KEY, other, alone, wrong).changes(read(*pairs), "items/0")
    assert changes.records.num_rows == 0
    reasons = [bad.reason for bad in changes.rejected]
    assert reasons[:4] == [
        "it does not begin with a zero and the id of a schema",
        "not a record of its schema",
        "bytes are left over after the record",
        "the registry has no schema 9",
    ]
    assert "schema 3: it has no record in after, as an envelope of Debezium has" in reasons[4]
    assert "schema 4: it has no record in after, as an envelope of Debezium has" in reasons[5]
    assert "schema 5: " in reasons[6]
    assert "time-micros" in reasons[6]
    assert reasons[7:] == [
        "the op 'x' of the envelope is none of c, r, u, d and t",
        "the envelope has op 'c' and no row in after",
        "the record key: it does not begin with a zero and the id of a schema",
        "the record key has no field id",
        "the record has no key, by which Debezium names its row",
    ]


def test_a_truncated_table_stops_the_run_or_is_a_dead_letter() -> None:
    given_ = read((None, {"op": "t"}))
    with pytest.raises(InputError, match=r"items/0, offset 10: the table was truncated .*letter"):
        table("json", format="debezium").changes(given_, "items/0")
    rows, refused = told(table("json", format="debezium", truncate="letter"), given_)
    assert (rows, refused) == ({}, {10: "the table was truncated (op 't'), which names no key"})


MEMBERS = [Field("a", String()), Field("b", Int()), Field("c", Bool())]
fields = st.fixed_dictionaries(
    {"a": st.text(), "b": st.integers(-(2**63), 2**63 - 1), "c": st.booleans()}
)


@settings(max_examples=100 * EXAMPLES // SAMPLED)
@given(row=fields, names=st.lists(st.sampled_from("abc"), min_size=1, unique=True))
def test_keys_that_are_written_here_are_read_back(row: dict[str, Any], names: list[str]) -> None:
    (key,) = key_bytes(records_of([row], MEMBERS), names).to_pylist()
    wanted = {name: row[name] for name in names}
    assert RecordKeys(MEMBERS, names, "bytes").fields_of(key) == wanted
    assert RecordKeys(MEMBERS, names, "json").fields_of(json.dumps(wanted).encode()) == wanted


@settings(max_examples=100 * EXAMPLES // SAMPLED)
@given(key=st.binary(max_size=30), names=st.lists(st.sampled_from("abc"), min_size=1, unique=True))
def test_no_bytes_are_taken_for_another_key(key: bytes, names: list[str]) -> None:
    try:
        found = RecordKeys(MEMBERS, names, "bytes").fields_of(key)
    except ValueError:
        return
    row = {"a": "", "b": 0, "c": False, **found}
    again = key_bytes(records_of([row], MEMBERS), names)[0].as_py()
    assert again == key or "b" in names  # an integer has a form of four bytes, too


@rp.record
class Sold:
    id: uuid.UUID
    day: dt.date
    price: Annotated[decimal.Decimal, rp.Decimal(12, 2)]
    wide: Annotated[decimal.Decimal, rp.Decimal(38, 4)]
    at: dt.datetime
    raw: bytes


def sold(form: str, **options: Any) -> tuple[TableValues, Chain]:
    pipeline = rp.Pipeline("p").table("sold", Sold, **options).sink("o")
    source = pipeline.plan().source
    chain = forms_of(RecordShape.of(source))
    assert source.table is not None
    return TableValues(JsonValues(chain.needed), source.table, form), chain  # type: ignore[arg-type]


def base64_of(units: int, length: int) -> str:
    return base64.b64encode(units.to_bytes(length, "big", signed=True)).decode()


ID = uuid.UUID(int=5 << 120)
AFTER = {
    "id": str(ID).upper(), "day": 20_484, "price": base64_of(-1250, 2), "raw": "AAE=",
    "wide": {"scale": 3, "value": base64_of(10**15, 8)}, "at": 1_769_851_800_123,
}  # fmt: skip
NAMES = {
    "id": ("string", "io.debezium.data.Uuid"), "day": ("int32", "io.debezium.time.Date"),
    "price": ("bytes", "org.apache.kafka.connect.data.Decimal"), "raw": ("bytes", None),
    "wide": ("struct", "io.debezium.data.VariableScaleDecimal"),
    "at": ("int64", "io.debezium.time.Timestamp"),
}  # fmt: skip


def with_schema(after: dict[str, Any], **names: str) -> dict[str, Any]:
    fields: list[Any] = [
        {"field": field, "type": kind, "name": names.get(field, name)}
        for field, (kind, name) in NAMES.items()
    ]
    fields[2]["parameters"] = {"scale": "2", "connect.decimal.precision": "12"}
    schema = {"type": "struct", "fields": [{"field": "after", "type": "struct", "fields": fields}]}
    return {"schema": schema, "payload": {"op": "u", "after": after}}


def test_envelopes_have_values_of_logical_types_as_debezium_writes_them() -> None:
    changes, chain = sold("json", key="id", format="debezium")
    key = json.dumps({"id": str(ID)}).encode()
    texts = {**AFTER, "price": "-12.50", "wide": "1000000000000", "at": "2026-01-31T09:30:00.123Z"}
    micros = {**AFTER, "at": AFTER["at"] * 1000}  # type: ignore[operator]  # a number
    name = "io.debezium.time.MicroTimestamp"
    given_ = read(
        (key, with_schema(AFTER)), (key, with_schema(micros, at=name)),
        (key, {"op": "c", "after": texts}), (key, {"op": "d", "after": None}), (key, None),
        (key, {"op": "c", "after": AFTER}), (json.dumps({"id": 5}).encode(), None),
        (key, with_schema({**AFTER, "price": "?"})), (b'{"id":"x"}', None),
    )  # fmt: skip
    found = chain.batch(changes.changes(given_, "sold/0"))
    rows = found.records.to_pylist()
    whole = {
        "id": str(ID), "day": 20_484, "price": -1250, "at": 1_769_851_800_123_000_000,
        "raw": "0001", "wide": format(10**16 + 2**127, "032x"), DELETED: False,
    }  # fmt: skip
    gone = dict.fromkeys(whole) | {"id": str(ID), DELETED: True}
    assert rows == [whole, whole, whole, gone, gone]
    assert {bad.offset: bad.cause for bad in found.rejected} == {
        15: "at is a number, and no schema in the envelope says its unit: let Debezium write "
        "schemas (value.converter.schemas.enable=true), or declare an int",
        16: "the record key has no UUID as id",
        17: "price is no decimal of at most 10 digits before the point and 2 after",
        18: "id is no UUID such as 123e4567-e89b-12d3-a456-426614174000",
    }


def test_schemas_of_envelopes_that_do_not_fit_reject_one_record() -> None:
    changes, chain = sold("json", key="id", format="debezium")
    key = json.dumps({"id": str(ID)}).encode()
    odd_member, odd_name, endless = (with_schema(AFTER) for _ in range(3))
    fields = odd_member["schema"]["fields"][0]["fields"]
    odd_member["schema"]["fields"][0]["fields"] = [{"field": []}, *fields]
    odd_name["schema"]["fields"][0]["fields"][-1]["name"] = []
    endless["schema"]["fields"][0]["fields"][2]["parameters"]["scale"] = float("inf")
    time = "io.debezium.time.Timestamp"
    given_ = read(
        (key, odd_member), (key, odd_name), (key, endless), (key, with_schema(AFTER, day=time)),
        (key, with_schema(AFTER, at="io.debezium.time.Date")), (key, None),
    )  # fmt: skip
    found = chain.batch(changes.changes(given_, "sold/0"))
    assert len(found.records) == 2  # the first, and the deletion
    first, *causes = (bad.cause for bad in sorted(found.rejected, key=lambda bad: bad.offset))
    assert first.startswith("at is a number, and no schema in the envelope says its unit")
    assert causes == [
        "price is no decimal of at most 10 digits before the point and 2 after",
        f"day is a time ({time}): declare a datetime",
        "at is a date (io.debezium.time.Date): declare a datetime.date",
    ]


def test_record_keys_name_rows_by_values_of_logical_types() -> None:
    changes, chain = sold("bytes", key=["id", "day", "price", "raw", "wide", "at"])
    values: list[Any] = [str(ID), 20_484, -1250, "00ff", format(10**16 + 2**127, "032x"), 5]
    parts = [one.encode() if isinstance(one, str) else long(one) for one in values]
    key = b"".join(len(one).to_bytes(4, "big") + one for one in parts)
    found = chain.batch(changes.changes(read((key, None), (key[:-1], None)), "sold/0"))
    (row,) = found.records.to_pylist()
    assert [*row.values()] == [str(ID), 20_484, -1250, values[4], 5, "00ff", True]
    by_day, days = sold("json", key="day")
    found = days.batch(by_day.changes(read((b"20484", None), (b'"2026-01-31"', None)), "sold/0"))
    assert [row["day"] for row in found.records.to_pylist()] == [20_484] * 2

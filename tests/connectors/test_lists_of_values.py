"""Lists of dates, times, decimals, UUIDs and bytes: from each source, in sinks and in topics."""

from __future__ import annotations

import csv
import datetime as dt
import decimal
import io
import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import fastavro
import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ripple as rp
from ripple.connectors.formats.avro import AvroValues
from ripple.connectors.formats.formats import values_of
from ripple.connectors.formats.framed import head_of, unreadable
from ripple.connectors.formats.json_schema import JsonSchemaValues, understood
from ripple.connectors.formats.registry import Registered
from ripple.connectors.log.topic_fields import check_topic
from ripple.connectors.record_shape import RecordShape
from ripple.connectors.transforms.forms import forms_of
from ripple.core.errors import InputError, SchemaError
from ripple.model.records import checks_of, schema_of
from ripple.model.schema import Date, Decimal, Field, Int, List, Schema
from ripple.model.schema.json_schema import to_json_schema
from ripple.storage.log import PartitionWriter, Topic
from ripple.storage.log.body import columns_of
from ripple.world import LiveClock, LiveDisk
from tests.connectors.formats.messages import MANY, ONE, message_of
from tests.connectors.formats.registries import OneSchema, no_registry
from tests.connectors.formats.test_avro import Held
from tests.connectors.read_records import read as read_batches
from tests.connectors.read_records import rows_and_causes

D = decimal.Decimal
NOON = dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)
ID = uuid.UUID(int=5)


@rp.record
class Order:
    at: int
    prices: list[Annotated[D, rp.Decimal(12, 4)]]
    large: list[Annotated[D, rp.Decimal(38, 4)]]
    days: list[dt.date]
    times: list[dt.datetime]
    ids: list[uuid.UUID]
    blobs: list[bytes]
    others: list[dt.date] | None = None


ROW: dict[str, Any] = {
    "at": 1,
    "prices": [D("1.5"), D("-2")],
    "large": [D("1e20"), D("0.0001")],
    "days": [dt.date(2026, 1, 31)],
    "times": [NOON],
    "ids": [ID],
    "blobs": [b"ab", b""],
    "others": None,
}
EMPTY: dict[str, Any] = {name: [] for name in ROW} | {"at": 2, "others": [dt.date(1970, 1, 1)]}
NS = 1_769_860_800_000_000_000
STORED = [
    {
        "at": 1,
        "prices": [15_000, -20_000],
        "large": ["800000000000d3c21bcecceda1000000", "80000000000000000000000000000001"],
        "days": [20_484],
        "times": [NS],
        "ids": [str(ID)],
        "blobs": ["6162", ""],
        "others": None,
    },
    {name: [] for name in ROW} | {"at": 2, "others": [0]},
]
TEXTS = {
    "at": 1,
    "prices": ["1.5", "-2"],
    "large": ["1e20", "0.0001"],
    "days": ["2026-01-31"],
    "times": ["2026-01-31T12:00:00Z"],
    "ids": [str(ID).upper()],
    "blobs": ["YWI=", ""],
}
TEXTS_EMPTY = {name: [] for name in TEXTS} | {"at": 2, "others": ["1970-01-01"]}
SCHEMA = pa.schema(
    {
        "at": pa.int64(),
        "prices": pa.list_(pa.decimal128(20, 8)),
        "large": pa.list_(pa.decimal128(38, 4)),
        "days": pa.list_(pa.date32()),
        "times": pa.list_(pa.timestamp("us", "UTC")),
        "ids": pa.list_(pa.binary(16)),
        "blobs": pa.list_(pa.binary()),
        "others": pa.list_(pa.date32()),
    }
)


def columns() -> pa.Table:
    return pa.Table.from_pylist([one | {"ids": [i.bytes for i in one["ids"]]}
                                 for one in (ROW, EMPTY)], SCHEMA)  # fmt: skip


def lines(folder: Path) -> str:
    place = folder / "rows.jsonl"
    place.write_text("".join(json.dumps(row) + "\n" for row in (TEXTS, TEXTS_EMPTY)))
    return str(place)


def cells(folder: Path) -> str:
    place = folder / "rows.csv"
    with place.open("w", newline="") as file:
        for row in (TEXTS, TEXTS_EMPTY):
            given = (json.dumps(row[name]) if name in row else "" for name in ROW)
            csv.writer(file).writerow(given)
    return str(place)


def parquet(folder: Path) -> str:
    pq.write_table(columns(), folder / "rows.parquet")
    return str(folder / "rows.parquet")


PLACES: dict[str, Callable[[Path], Any]] = {
    "objects": lambda _: [ROW, EMPTY],
    "arrow": lambda _: columns(),
    "large": lambda _: columns().cast(
        pa.schema([pa.field(one.name, pa.large_list(one.type.value_type))
                   if pa.types.is_list(one.type) else one for one in SCHEMA])),
    "jsonl": lines,
    "csv": cells,
    "parquet": parquet,
}  # fmt: skip


@pytest.mark.parametrize("kind", PLACES)
def test_each_source_reads_the_same_lists(kind: str, tmp_path: Path) -> None:
    assert rows_and_causes(PLACES[kind](tmp_path), Order) == (STORED, [])


CHAIN = forms_of(RecordShape(schema_of(Order)))


def read(values: Any, given: list[bytes]) -> tuple[list[Any], list[str]]:
    found = CHAIN.batch(values.batch(pa.array(given, pa.binary())))
    return found.records.to_pylist(), [bad.cause for bad in found.rejected]


def test_avro_messagepack_and_protobuf_have_them(tmp_path: Path) -> None:
    registry: Any = OneSchema()
    items: dict[str, Any] = {
        "prices": {"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 4},
        "large": {"type": "bytes", "logicalType": "decimal", "precision": 38, "scale": 4},
        "days": {"type": "int", "logicalType": "date"},
        "times": {"type": "long", "logicalType": "timestamp-millis"},
        "ids": {"type": "string", "logicalType": "uuid"},
        "blobs": "bytes",
        "others": {"type": "int", "logicalType": "date"},
    }
    arrays = {name: {"type": "array", "items": of} for name, of in items.items()}
    fields = [{"name": "at", "type": "long"}, *({"name": name, "type": of}
              for name, of in arrays.items() if name != "others"),
              {"name": "others", "type": ["null", arrays["others"]]}]  # fmt: skip
    registry.text = json.dumps({"type": "record", "name": "R", "fields": fields})
    schema = fastavro.parse_schema(json.loads(registry.text))
    written = []
    for row in (ROW, EMPTY):
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, row)
        written.append(head_of(7) + out.getvalue())
    assert read(AvroValues(CHAIN.needed, registry), written) == (STORED, [])
    packed = [msgspec.msgpack.encode(row) for row in
              (TEXTS | {"blobs": [b"ab", b""], "others": None}, TEXTS_EMPTY)]  # fmt: skip
    assert read(values_of("msgpack", CHAIN.needed, no_registry), packed) == (STORED, [])
    members = {"at": (3, ONE), **dict.fromkeys(items, (9, MANY)), "blobs": (12, MANY),
               "days": (5, MANY)}  # fmt: skip
    make, options = message_of(tmp_path, "Order", members)
    values = values_of("protobuf", CHAIN.needed, no_registry, options=options)
    messages = [TEXTS | {"blobs": [b"ab", b""], "days": [20_484]}, TEXTS_EMPTY]
    assert read(values, [make(**one).SerializeToString() for one in messages]) == (
        [STORED[0] | {"others": []}, STORED[1]],
        [],
    )
    make, options = message_of(tmp_path, "Wrong", {**members, "ids": (3, MANY)})
    with pytest.raises(InputError, match="repeated int64, and the pipeline's is a list of UUIDs"):
        values_of("protobuf", CHAIN.needed, no_registry, options=options)


@rp.record
class Parts:
    prices: list[str]
    price: Annotated[D, rp.Decimal(12, 4)]
    sizes: dict[str, int]
    lines: str = rp.field(format="json")
    days: list[dt.date] | None = None


PARTS = forms_of(RecordShape(schema_of(Parts), checks_of(Parts)))


def test_objects_with_a_json_schema_have_them() -> None:
    registry: Any = Held(to_json_schema(schema_of(Order)), form="JSON")
    written = [head_of(1) + json.dumps(row).encode() for row in (TEXTS, TEXTS_EMPTY)]
    assert read(JsonSchemaValues(CHAIN.needed, registry), written) == (STORED, [])
    array = {"type": "array", "items": {"type": "string"}}
    sound = {
        "prices": array,
        "price": {"type": "number"},
        "sizes": {"type": "object", "additionalProperties": {"type": "integer"}},
        "lines": {"type": "array", "items": {"type": "object", "properties": {}}},
        "days": {"anyOf": [array, {"type": "null"}]},
    }
    for changed, why in (
        ({}, ""),
        ({"days": {"type": ["null", "array"], "items": {}}}, ""),
        ({"prices": {"type": "number"}}, "parts.prices: the reader has type String, the writer"),
        ({"prices": {"type": ["array", "null"], "items": {}}}, "parts.prices"),
        ({"sizes": array}, "parts.sizes"),
        ({"price": array}, "parts.price"),
    ):
        document = {"type": "object", "properties": {**sound, **changed}, "required": [*sound]}
        found = Registered(1, "JSON", json.dumps(document))
        said = unreadable(found, "JSON", PARTS.needed, understood)
        assert (why in said) if why else said == "", said


@pytest.mark.parametrize(
    ("field", "text", "words"),
    [
        ("days", '["2026-02-30"]', "dates: an item is no date of ISO 8601 such as 2026-01-31"),
        ("days", "[20484]", "dates: an item"),
        ("prices", "[0.00001]", "decimals: an item is no decimal of at most 8 digits before"),
        ("prices", '[1.5, "x"]', "decimals: an item"),
        ("prices", "[null]", "decimals: an item"),
        ("prices", "[true]", "decimals: an item"),
        ("times", '["2026-01-31"]', "times: an item is no time of ISO 8601"),
        ("ids", '["x"]', "UUIDs: an item is no UUID such as"),
        ("blobs", '["x"]', "bytes: an item is no base64"),
    ],
)
def test_an_item_of_another_form_rejects_its_record(
    field: str, text: str, words: str, tmp_path: Path
) -> None:
    sound = json.dumps(TEXTS)
    bad = json.dumps(TEXTS | {field: "HERE"}).replace('"HERE"', text)
    (tmp_path / "t.jsonl").write_text(f"{sound}\n{bad}\n{sound}\n")
    rows, (cause,) = rows_and_causes(str(tmp_path / "t.jsonl"), Order)
    assert rows == [STORED[0]] * 2
    assert cause.startswith(f"{field} is not a list of {words}")


def test_numbers_of_json_are_read_digit_by_digit(tmp_path: Path) -> None:
    parts = "[0.1, 99999999.9999,-0]", '["0.1",1e-4]', "[ 7 ]", "[]"
    (tmp_path / "t.jsonl").write_text(
        "".join(json.dumps(TEXTS | {"prices": "P"}).replace('"P"', one) + "\n" for one in parts)
    )
    rows, causes = rows_and_causes(str(tmp_path / "t.jsonl"), Order)
    assert causes == []
    assert [row["prices"] for row in rows] == [[1000, 10**12 - 1, 0], [1000, 1], [70_000], []]
    floats = [ROW | {"prices": [1.5]}]  # Python's float is no decimal, in a list as elsewhere
    assert rows_and_causes(floats, Order)[0] == []
    with pytest.raises(SchemaError, match="but the schema declares a list of decimals"):
        rows_and_causes(columns().set_column(1, "prices", pa.array([[1.5], []])), Order)


def test_a_format_is_that_of_the_items(tmp_path: Path) -> None:
    @rp.record
    class Formed:
        at: list[rp.Timestamp] = rp.field(format="ms")
        day: list[dt.date] = rp.field(format="%d.%m.%Y")
        hex: list[bytes] = rp.field(format="hex")

    (tmp_path / "t.jsonl").write_text('{"at":[1,2],"day":["31.01.2026"],"hex":["FF"]}\n')
    wanted = [{"at": [1_000_000, 2_000_000], "day": [20_484], "hex": ["ff"]}]
    assert rows_and_causes(str(tmp_path / "t.jsonl"), Formed) == (wanted, [])
    (tmp_path / "t.jsonl").write_text('{"at":[1.5],"day":[],"hex":[]}\n')
    words = "at is not a list of integers: an item is no integer, or does not fit in 64 bits"
    assert rows_and_causes(str(tmp_path / "t.jsonl"), Formed) == ([], [words])
    typed = [{"at": [1, 2], "day": [dt.date(2026, 1, 31)], "hex": [b"\xff"]}]
    assert rows_and_causes(typed, Formed) == (wanted, [])
    times = pa.array([[NOON]], pa.list_(pa.timestamp("s", "UTC")))

    @rp.record
    class Plain:
        at: list[rp.Timestamp]

    assert rows_and_causes(pa.table({"at": times}), Plain)[0] == [{"at": [NS]}]
    with pytest.raises(SchemaError, match="the schema declares a list of integers"):
        rows_and_causes(pa.table({"at": times, "day": [["x"]], "hex": [["x"]]}), Formed)

    class Wrong:
        ids: list[uuid.UUID] = rp.field(format="iso")

    with pytest.raises(SchemaError, match="a UUID"):
        rp.Pipeline("p").source("t", rp.record(Wrong))


def test_functions_and_sinks_have_their_values(tmp_path: Path) -> None:
    seen: list[Any] = []

    def same(row: Any) -> Any:
        seen.append(row.prices)
        return row

    orders = rp.Pipeline("p").source("orders", Order).map("m", same, into=Order)
    plan = orders.sink("o").plan()
    assert rp.collect(plan, [ROW, EMPTY]).table().to_pylist()[0]["days"] == ROW["days"]
    assert seen == [ROW["prices"], []]
    for name in ("o.parquet", "o.jsonl", "o.csv"):
        rp.run(plan, source=[ROW, EMPTY], sink=str(tmp_path / name))
    written = pq.read_table(tmp_path / "o.parquet")
    assert written.schema.field("prices").type.value_type == pa.decimal128(12, 4)
    assert written.to_pylist()[0]["times"] == ROW["times"]
    line = json.loads((tmp_path / "o.jsonl").read_text().splitlines()[0])
    assert (line["prices"], line["days"]) == (["1.5000", "-2.0000"], ["2026-01-31"])
    for name in ("o.parquet", "o.jsonl"):  # and are read again
        assert rows_and_causes(str(tmp_path / name), Order) == (STORED, [])


def test_topics_hold_stored_items(tmp_path: Path) -> None:
    topic = Topic.create(LiveDisk(tmp_path), "orders", schema_of(Order))
    with PartitionWriter(topic, 0, LiveClock()) as writer:
        writer.append(pa.RecordBatch.from_pylist(STORED, topic_rows(topic)))
    assert rows_and_causes(f"log:{tmp_path / 'orders'}", Order) == (STORED, [])

    @rp.record
    class Checked:
        at: int = rp.field(gt=5)
        days: list[dt.date]

    (batch,) = read_batches(f"log:{tmp_path / 'orders'}", Checked)
    assert json.loads(batch.rejected[0].raw) == {"at": 1, "days": ["2026-01-31"]}
    there, other, wider = (
        Schema("t", (Field("x", List(of)),)) for of in (Date(), Int(), Decimal(12, 4))
    )
    for declared in (other, wider):
        with pytest.raises(SchemaError, match="is a list of Date, but the schema declares a list"):
            check_topic(there, declared, "log:t")


def topic_rows(topic: Topic) -> pa.Schema:
    names = [field.name for field in topic.schema.fields]
    return pa.schema([columns_of(topic.schema).field(name) for name in names])


def test_what_is_no_list_of_values_names_texts_of_json() -> None:
    def pipeline(kind: Any, **given: Any) -> Any:
        made = rp.record(type("Odd", (), {"__annotations__": {"x": kind}, **given}))
        return rp.Pipeline("p").source("s", made).sink("out")

    with pytest.raises(SchemaError, match=r"or str with rp.field\(format='json'\) for any array"):
        rp.collect(pipeline(list[list[int]]), [])
    for kind in (int, float, list[int], dict[str, int], bytes, dt.date, list[dt.date]):
        with pytest.raises(SchemaError, match=r"'x' has format='json', .*: declare it as str"):
            pipeline(kind, x=rp.field(format="json")).plan()


@rp.record
class Visit:
    at: int
    times: list[dt.datetime] | None
    doc: str | None = rp.field(format="json")


def test_times_of_older_parquet_within_lists_are_read_or_named(tmp_path: Path) -> None:
    far, near = NOON.replace(2300), NOON  # the first is beyond 64 bits of nanoseconds
    given = [[near], None, [], [near, far], [near, near]]
    docs = [[], [{"t": near}], [{"t": far}], None, [{"t": near}, {"t": None}]]
    item = pa.struct({"t": pa.timestamp("us")})
    table = pa.table(
        {
            "at": pa.array(range(5), pa.int64()),
            "times": pa.array(given, pa.list_(pa.timestamp("us"))),
            "doc": pa.array(docs, pa.list_(item)),
        }
    )
    place = str(tmp_path / "t.parquet")
    pq.write_table(table, place, use_deprecated_int96_timestamps=True)
    rows, causes = rows_and_causes(place, Visit)
    assert [(row["at"], row["times"]) for row in rows] == [(0, [NS]), (1, None), (4, [NS, NS])]
    assert [cause.split()[0] for cause in causes] == ["doc", "times"]

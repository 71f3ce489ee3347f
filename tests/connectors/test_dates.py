"""Dates from each kind of source, to each kind of sink, and as parts of a pipeline."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable

import ripple as rp
from ripple.connectors.formats.avro import AvroValues
from ripple.connectors.formats.msgpack import MsgpackValues
from ripple.connectors.kafka.row_values import row_values
from ripple.connectors.memory import MemorySink
from ripple.connectors.record_shape import RecordShape
from ripple.connectors.transforms.chain import Chain
from ripple.connectors.transforms.steps import ReadTime
from ripple.core.errors import InputError, PlanError, SchemaError
from ripple.model.batch import Batch
from ripple.model.keys.partitioner import key_bytes
from ripple.model.pipeline.nodes import DELETED
from ripple.model.records import schema_of
from ripple.model.schema import Date, Field, Option, fingerprint
from ripple.storage.log import PartitionWriter, Topic
from ripple.world import LiveClock, LiveDisk
from tests.connectors.formats.registries import OneSchema
from tests.connectors.read_records import PLACES, rows_and_causes

DAY, LAST = dt.date(2026, 1, 31), dt.date(9999, 12, 31)
WORDS = "day is no date of ISO 8601 such as 2026-01-31"


@rp.record
class Fill:
    name: str
    day: dt.date
    ends: dt.date | None = None


@rp.record(name="fill")
class Dotted:
    name: str
    day: dt.date = rp.field(format="%d.%m.%Y")
    ends: dt.date | None = rp.field(format="iso", default=None)


ROWS: list[dict[str, Any]] = [
    {"name": "a", "day": "2026-01-31", "ends": "9999-12-31"},
    {"name": "b", "day": "2026-02-30", "ends": None},
    {"name": "c", "day": "1969-12-31", "ends": None},
]
WANTED = [
    {"name": "a", "day": 20_484, "ends": 2_932_896},
    {"name": "c", "day": -1, "ends": None},
]
OBJECTS = [
    {"name": "a", "day": DAY, "ends": LAST},
    {"name": "c", "day": dt.date(1969, 12, 31), "ends": None},
]


def read(place: Any, cls: type = Fill) -> tuple[list[dict[str, Any]], list[str]]:
    return rows_and_causes(place, cls)


@pytest.mark.parametrize("kind", PLACES)
def test_texts_are_dates(kind: str, tmp_path: Path) -> None:
    assert read(PLACES[kind](tmp_path, ROWS)) == (WANTED, [WORDS])


@pytest.mark.parametrize("kind", [pa.date32(), pa.date64()])
def test_columns_of_dates_are_taken(kind: pa.DataType, tmp_path: Path) -> None:
    table = pa.Table.from_pylist(OBJECTS)
    for name in ("day", "ends"):
        at = table.schema.get_field_index(name)
        table = table.set_column(at, name, table.column(name).cast(kind))
    pq.write_table(table, tmp_path / "fills.parquet")
    assert read(table) == read(str(tmp_path / "fills.parquet")) == (WANTED, [])


def test_objects_are_dates() -> None:
    assert read(OBJECTS) == read([Fill(**one) for one in OBJECTS]) == (WANTED, [])
    with pytest.raises(SchemaError, match=r"'day' must be a date, not datetime\.datetime"):
        read([{"name": "a", "day": dt.datetime(2026, 1, 31)}])  # noqa: DTZ001
    with pytest.raises(SchemaError, match=r"is timestamp.*but the schema declares a date"):
        read(pa.table({"name": ["a"], "day": pa.array([0], pa.timestamp("s"))}))


def test_a_pattern_is_declared_without_a_zone(tmp_path: Path) -> None:
    (tmp_path / "fills.csv").write_text("a,31.01.2026,9999-12-31\nb,2026-01-31,\nc,1.2.2026,\n")
    rows, causes = read(str(tmp_path / "fills.csv"), Dotted)
    assert rows == WANTED[:1]
    assert causes == ["day is no date of the form %d.%m.%Y"] * 2
    assert fingerprint(schema_of(Fill)) == fingerprint(schema_of(Dotted))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"format": "ms"}, "that of a date is 'iso' or a pattern"),
        ({"format": "%d.%m"}, "a year, a month and a day"),
        ({"format": "%Y-%m-%d", "zone": "UTC"}, "a date has none"),
        ({"ge": 5}, "which cannot be 5: choose another bound"),
    ],
)
def test_what_a_date_does_not_have_is_refused(given: Any, told: str) -> None:
    class Bad:
        day: dt.date = rp.field(**given)

    with pytest.raises(SchemaError, match=told):
        rp.Pipeline("p").source("s", rp.record(Bad))


def test_a_pattern_of_days_is_none_of_a_time() -> None:
    @rp.record
    class Bad:
        at: rp.Timestamp = rp.field(format="%d.%m.%Y")

    with pytest.raises(SchemaError, match="no zone is written: add zone='UTC'"):
        rp.Pipeline("p").source("s", Bad)


def test_messages_of_messagepack_have_texts() -> None:
    shape = RecordShape(schema_of(Fill))
    chain = Chain([ReadTime(name, form) for name, form in shape.forms.items()], shape)
    given = pa.array([msgspec.msgpack.encode(row) for row in [*ROWS, {"name": "d", "day": 5}]])
    batch = chain.batch(MsgpackValues(chain.needed).batch(given))
    assert batch.records.to_pylist() == WANTED
    assert [bad.cause for bad in batch.rejected] == [WORDS, "day is not a date"]


def test_deletions_of_a_table_pass_by() -> None:
    @rp.record
    class Row:
        name: str
        day: dt.date

    rows = rp.Pipeline("p").table("rows", Row, key="name")
    shape = RecordShape.of(rows.derive("d", of=Row.day.dt.year()).sink("o").plan().source)
    chain = Chain([ReadTime(name, form) for name, form in shape.forms.items()], shape)
    found = chain.batch(Batch(pa.record_batch({
        "name": ["a", "b", "c"], "day": pa.array(["2026-01-31", "x", None], pa.string()),
        DELETED: [False, False, True],
    }), 3))  # fmt: skip
    assert found.records.to_pylist() == [
        {"name": "a", "day": 20_484, DELETED: False}, {"name": "c", "day": None, DELETED: True}
    ]  # fmt: skip
    assert [bad.offset for bad in found.rejected] == [1]


def folded() -> rp.Plan:
    fills = rp.Pipeline("fills").source("fills", Fill).derive("more", left=Fill.ends - Fill.day)
    rows = fills.partition("by_day", key="day").fold(
        "last", ends=rp.max("ends"), left=rp.min("left"), all=rp.top_k("day", 2)
    )
    return rows.sink("out").plan()


def test_dates_leave_as_dates(tmp_path: Path) -> None:
    sink = MemorySink()
    rp.run(folded(), source=OBJECTS, sink=sink)
    first = {"day": DAY, "op": 0, "ends": LAST, "left": 2_912_412, "all": [DAY]}
    assert first in sink.rows()
    types = {field.name: field.type for field in sink.batches[0].schema}
    assert types["day"] == types["ends"] == types["all"].value_type == pa.date32()
    for name in ("out.csv", "out.jsonl", "out.parquet"):
        rp.run(folded(), source=OBJECTS, sink=str(tmp_path / name))
    text = (tmp_path / "out.csv").read_text().splitlines()
    assert '2026-01-31,9999-12-31,2912412,"[""2026-01-31""]"' in text
    made = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert {**made[0], "op": "set"} in [
        {"op": "set", "day": "2026-01-31", "ends": "9999-12-31", "left": 2_912_412,
         "all": ["2026-01-31"]},
        {"op": "set", "day": "1969-12-31", "ends": None, "left": None, "all": ["1969-12-31"]},
    ]  # fmt: skip
    assert pq.read_table(tmp_path / "out.parquet").schema.field("day").type == pa.date32()


def test_functions_of_users_have_dates() -> None:
    def later(row: Any) -> Any:
        return Fill(row.name, row.day + dt.timedelta(1), row.ends)

    def much_later(rows: Any) -> Any:
        return {**rows, "day": rows["day"] + 10}

    fills = rp.Pipeline("fills").source("fills", Fill)
    mapped = fills.map("later", later, into=Fill).map("more", much_later, into=Fill, batch=True)
    sink = MemorySink()
    rp.run(mapped.partition("p", key="name").fold("f", day=rp.max("day")).sink("o"),
           source=OBJECTS, sink=sink)  # fmt: skip
    assert {row["name"]: row["day"] for row in sink.rows()} == {
        "a": dt.date(2026, 2, 11), "c": dt.date(1970, 1, 11)
    }  # fmt: skip


def test_a_scan_has_dates() -> None:
    @rp.record
    class Timed:
        name: str
        at: rp.Timestamp
        day: dt.date

    @dataclasses.dataclass
    class Seen:
        days: int = 0

    def step(seen: Seen, row: Timed) -> dict[str, Any]:
        seen.days = row.day.toordinal()
        return {"name": row.name, "next": row.day + dt.timedelta(1)}

    @rp.record
    class Next:
        name: str
        next: dt.date

    rows = rp.Pipeline("p").source("rows", Timed)
    plan = rows.scan("s", key="name", state=Seen, step=step, into=Next, settled=True)
    folded = plan.partition("by", key="name").fold("f", day=rp.max("next")).sink("o")
    sink = MemorySink()
    rp.run(folded, source=[{"name": "a", "at": 1, "day": DAY}], sink=sink)
    assert sink.rows()[0]["day"] == dt.date(2026, 2, 1)


def test_a_result_of_a_function_that_is_no_date_is_refused() -> None:
    def wrong(row: Any) -> Any:
        day = dt.datetime(2026, 1, 1, tzinfo=dt.UTC) if row.name == "a" else row.day
        return {"name": row.name, "day": day, "ends": None}

    sink = MemorySink()
    fills = rp.Pipeline("fills").source("fills", Fill).map("wrong", wrong, into=Fill)
    plan = fills.partition("p", key="name").fold("f", n=rp.count()).sink("o")
    with pytest.warns(rp.LostRecordsWarning, match="the field 'day' must be a date"):
        report = rp.run(plan, source=OBJECTS, sink=sink)
    assert report.rejected.total() == 1


def test_a_constant_and_a_table_are_found_by_dates() -> None:
    holidays = rp.constant("holidays", [{"day": DAY, "label": "x"}], key="day")
    again = rp.constant("holidays", pa.table({"day": pa.array([DAY]), "label": ["x"]}), key="day")
    assert holidays == again
    joined = rp.Pipeline("p").source("fills", Fill).join("j", holidays, on="day")
    sink = MemorySink()
    rp.run(joined.partition("p", key="day").fold("f", label=rp.max("label")).sink("o"),
           source=OBJECTS, sink=sink)  # fmt: skip
    assert [(row["day"], row["label"]) for row in sink.rows()] == [(DAY, "x")]
    with pytest.raises(PlanError, match="needs a number, not date"):
        rp.Pipeline("p").source("fills", Fill).partition("p", key="day").fold("s", s=rp.sum("ends"))


def test_topics_hold_days(tmp_path: Path) -> None:
    topic = Topic.create(LiveDisk(tmp_path), "fills", schema_of(Fill))
    with PartitionWriter(topic, 0, LiveClock()) as writer:
        columns = {name: [row[name] for row in WANTED] for name in WANTED[0]}
        writer.append(pa.RecordBatch.from_pydict(columns))
    assert read(f"log:{tmp_path / 'fills'}") == (WANTED, [])


def test_bytes_of_keys_and_of_values() -> None:
    days = pa.record_batch({"day": pa.array([20_484, -1], pa.int64())})
    assert [one.hex() for one in key_bytes(days, ("day",)).to_pylist()] == [
        "0000000000005004", "ffffffffffffffff"
    ]  # fmt: skip
    narrow = rp.Pipeline("n").source("fills", Fill).partition("p", key="day")
    shown = narrow.fold("f", ends=rp.max("ends")).sink("o").plan().output("o")
    changes = pa.record_batch({"day": pa.array([DAY]), "ends": pa.array([LAST])})
    (value,) = row_values("msgpack", shown, "kafka:x").values(changes).to_pylist()
    assert msgspec.msgpack.decode(value) == {"day": "2026-01-31", "ends": "9999-12-31"}


def test_a_user_has_to_read_what_there_is(tmp_path: Path) -> None:
    (tmp_path / "t.toml").write_text('[[transform]]\ntimestamp = "day"\nfrom = "ms"\n')
    (tmp_path / "fills.csv").write_text("a,5,\n")
    with pytest.raises(InputError, match="'day' is no number of nanoseconds"):
        read(f"through:{tmp_path / 't.toml'},{tmp_path / 'fills.csv'}")


def test_an_optional_date_is_one_type() -> None:
    (field,) = [one for one in schema_of(Fill).fields if one.name == "ends"]
    assert field == Field("ends", Date(), optional=True)
    assert Option(Date()) != Date()


@pytest.mark.parametrize("is_slow", [False, True])
def test_avro_has_dates_of_its_own(is_slow: bool) -> None:
    registry: Any = OneSchema()
    rows = rp.Pipeline("n").source("fills", Fill).partition("p", key="day")
    output = rows.fold("f", ends=rp.max("ends")).sink("o").plan().output("o")
    writer = row_values("avro", output, "kafka:x", registry, "o-value")
    assert '{"type": "int", "logicalType": "date"' in registry.text
    changes = pa.record_batch({"day": pa.array([DAY]), "ends": pa.array([LAST])})
    values = writer.values(changes)

    @rp.record
    class Row:
        day: dt.date
        ends: dt.date | None = None

    shape = RecordShape(schema_of(Row))
    chain = Chain([ReadTime(name, form) for name, form in shape.forms.items()], shape)
    found = chain.batch(AvroValues(chain.needed, registry, is_slow=is_slow).batch(values))
    assert found.records.to_pylist() == [{"day": 20_484, "ends": 2_932_896}]


def test_delta_lake_has_dates(tmp_path: Path) -> None:
    plan = rp.Pipeline("n").source("fills", Fill).partition("p", key="day")
    rp.run(plan.fold("f", ends=rp.max("ends")).sink("o"), source=OBJECTS,
           sink=f"delta:{tmp_path}/d")  # fmt: skip
    found = DeltaTable(f"{tmp_path}/d").to_pyarrow_table().sort_by("day").to_pylist()
    assert found[1] == {"day": DAY, "ends": LAST}

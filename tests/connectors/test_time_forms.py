"""Times as sources write them, by the forms that a record declares."""

from __future__ import annotations

import dataclasses
import datetime as dt
import json
import typing
from pathlib import Path
from typing import Annotated, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ripple as rp
from ripple.connectors.postgres.messages import Column
from ripple.connectors.postgres.row import Rows
from ripple.connectors.record_shape import RecordShape
from ripple.core.errors import InputError, PlanError, SchemaError
from ripple.model.records import schema_of
from ripple.model.schema import fingerprint
from ripple.storage.log import PartitionWriter, Topic
from ripple.world import LiveClock, LiveDisk
from tests.connectors.read_records import PLACES, csv_file, read, rows_of

NOON = 1_769_860_800_000_000_000  # 2026-01-31
GOOD, BAD = "2026-01-31T13:00:00+01:00", "2026-01-31T24:00:00Z"
WORDS = "at is no time of ISO 8601 such as 2026-01-31T09:30:00Z"


@rp.record
class Order:
    name: str
    at: rp.Timestamp = rp.field(format="iso", ge=0)
    sent: rp.Timestamp | None = rp.field(format="ms", default=None)


@rp.record(name="order")
class Plain:
    name: str
    at: rp.Timestamp
    sent: rp.Timestamp | None = None


ROWS: list[dict[str, Any]] = [
    {"name": "a", "at": GOOD, "sent": 1_769_860_800_001},
    {"name": "b", "at": BAD, "sent": 1},
    {"name": "c", "at": GOOD, "sent": None},
    {"name": "d", "at": "1969-12-31T23:59:59Z", "sent": 1},
    {"name": "e", "at": GOOD, "sent": 1 << 60},
]
WANTED = [
    {"name": "a", "at": NOON, "sent": NOON + 1_000_000},
    {"name": "c", "at": NOON, "sent": None},
]
REASONS = [(1, WORDS), (3, "at is not at least 0"), (4, "sent does not fit in 64 bits")]


@pytest.mark.parametrize("kind", PLACES)
@pytest.mark.parametrize("batch_rows", [1, 3, 100])
def test_each_source_has_times_by_their_forms(kind: str, batch_rows: int, tmp_path: Path) -> None:
    batches = read(PLACES[kind](tmp_path, ROWS), Order, batch_rows)
    assert rows_of(batches) == WANTED
    rejected = [bad for batch in batches for bad in batch.rejected]
    assert [(bad.offset, bad.reason) for bad in rejected] == REASONS
    for bad in rejected:  # as it came
        assert json.loads(bad.raw)["at"] == ROWS[bad.offset]["at"]
    assert batches[-1].next_offset == len(ROWS)


def test_topics_have_nanoseconds_whatever_the_form(tmp_path: Path) -> None:
    topic = Topic.create(LiveDisk(tmp_path), "orders", schema_of(Order))
    with PartitionWriter(topic, 0, LiveClock()) as writer:
        columns = {"name": ["a"], "at": [NOON], "sent": [NOON]}
        writer.append(pa.RecordBatch.from_pydict(columns))
    assert rows_of(read(f"log:{tmp_path}/orders", Order)) == [
        {"name": "a", "at": NOON, "sent": NOON}
    ]


def test_a_call_of_the_type_is_told_where_the_form_stands() -> None:
    with pytest.raises(SchemaError, match=r'rp.Timestamp = rp.field\(format="iso"\)'):
        rp.Timestamp(format="iso")  # type: ignore[call-arg]  # what the test is about
    assert rp.Timestamp | None == typing.Annotated[int, rp.Timestamp.__metadata__[0]] | None  # type: ignore[attr-defined]


@rp.record
class IsoOnly:
    at: rp.Timestamp = rp.field(format="iso")


@pytest.mark.parametrize(
    ("unit", "zone"), [("s", None), ("us", None), ("ns", "UTC"), ("ms", "Asia/Tokyo")]
)
def test_a_class_of_iso_times_reads_columns_of_times(
    unit: str, zone: str | None, tmp_path: Path
) -> None:
    times = pa.array([NOON, -1_000_000_000], pa.timestamp("ns", zone))
    times = times.cast(pa.timestamp(unit, zone))
    table, path = pa.table({"at": times}), str(tmp_path / "times.parquet")
    pq.write_table(table, path)
    for place in (table, path, table.to_reader()):
        assert rows_of(read(place, IsoOnly)) == [{"at": NOON}, {"at": -1_000_000_000}]


@pytest.mark.parametrize("kind", [rp.Timestamp, dt.datetime])
def test_a_field_with_a_pattern_reads_times_that_are_no_texts(kind: Any) -> None:
    """Also times with parts beside the pattern; a text is read by the pattern, not as ISO 8601."""
    swapped = rp.field(format="%Y-%d-%mT%H:%M:%SZ", zone="+01:00")
    days = rp.field(format="%d.%m.%Y", default=None)
    names = {"at": kind, "day": dt.date | None}
    body = {"__annotations__": names, "at": swapped, "day": days}
    cls = rp.record(type("Swapped", (), body))
    at = dt.datetime(2026, 3, 2, 1, 0, 0, 5, tzinfo=dt.UTC)
    ns = 1_772_413_200_000_005_000
    columns = pa.table({"at": pa.array([at, None]), "day": pa.array([at.date()] * 2)})
    rows: list[Any] = [{"at": at}, {"at": "2026-02-03T02:00:00Z", "day": "02.03.2026"}]
    for source, wanted in ((columns, [(ns, 20_514)]), (rows, [(ns, None), (ns - 5_000, 20_514)])):
        found = read(source, cls)
        assert [(row["at"], row["day"]) for row in rows_of(found)] == wanted
    naive = [{"at": at.replace(tzinfo=None)}, {"at": "\0x"}, {"at": "2026-03-02T01:00:00Z"}]
    assert [row["at"] for row in rows_of(read(naive, cls))] == [
        ns - 3600 * 10**9,
        1_770_076_800_000_000_000,
    ]


@rp.record
class Sent:
    sent: rp.Timestamp = rp.field(format="ms")


@pytest.mark.parametrize("kind", [pa.timestamp("ms"), pa.timestamp("ns", "UTC"), pa.date32()])
def test_a_column_of_times_is_no_number_of_a_unit(kind: pa.DataType, tmp_path: Path) -> None:
    table = pa.table({"sent": pa.array([1], pa.int32()).cast(pa.int64())})
    path = str(tmp_path / "sent.parquet")
    pq.write_table(table, path)
    assert rows_of(read(table, Sent)) == rows_of(read(path, Sent)) == [{"sent": 1_000_000}]
    times = pa.table({"sent": pa.array([1], pa.int32() if pa.types.is_date(kind) else pa.int64())
                      .cast(kind)})  # fmt: skip
    pq.write_table(times, path)
    for place in (times, path, times.to_reader()):
        with pytest.raises(SchemaError, match=r"column 'sent' .* a time already"):
            read(place, Sent)


@rp.record
class Instant:
    sent: rp.Timestamp


RENAMED = '[[transform]]\nrename = { then = "sent" }\n'
IN_MS = '[[transform]]\ntimestamp = "sent"\nfrom = "ms"\n'


@pytest.mark.parametrize(("file", "cls"), [(RENAMED, Sent), (RENAMED + IN_MS, Instant)])
def test_nor_is_one_behind_transforms(file: str, cls: type, tmp_path: Path) -> None:
    (tmp_path / "file.toml").write_text(file)
    place = f"through:{tmp_path}/file.toml,{tmp_path}/sent.parquet"
    pq.write_table(pa.table({"then": [1]}), tmp_path / "sent.parquet")
    assert rows_of(read(place, cls)) == [{"sent": 1_000_000}]
    pq.write_table(pa.table({"then": pa.array([1], pa.timestamp("s"))}), tmp_path / "sent.parquet")
    with pytest.raises(SchemaError, match=r"column 'then' .* a time already"):
        read(place, cls)


def test_nor_is_a_column_of_times_in_postgres() -> None:
    shape = RecordShape(schema_of(Sent), units=frozenset({"sent"}))
    Rows("table 'orders'", [Column("sent", 20, False)], shape)
    for kind in (1082, 1114, 1184):  # date, timestamp, timestamptz
        with pytest.raises(InputError, match="table 'orders' has a column 'sent' that is a time"):
            Rows("table 'orders'", [Column("sent", kind, False)], shape)


def test_a_form_is_no_part_of_a_schema_nor_of_node_keys() -> None:
    assert fingerprint(schema_of(Order)) == fingerprint(schema_of(Plain))

    def keys(cls: type) -> list[str]:
        source = rp.Pipeline("orders").source("orders", cls, time="at")
        plan = source.partition("by-name", "name").fold("counts", n=rp.count()).sink("out").plan()
        return [plan.source.node_key, *(fold.node_key for fold in plan.folds)]

    assert keys(Order) == keys(Plain)


def test_a_pipeline_from_text_to_windows(tmp_path: Path) -> None:
    by_name = rp.Pipeline("orders").source("orders", Order, time="at").partition("by", "name")
    pipeline = by_name.window("hour", rp.Tumbling("1h")).fold("counts", n=rp.count()).sink("out")
    out, letters = tmp_path / "out.jsonl", tmp_path / "letters.jsonl"
    rp.run(pipeline, source=csv_file(tmp_path, ROWS), sink=str(out), dead_letters=str(letters))
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert {(row["name"], row["window_start_ns"], row["n"]) for row in rows} == {
        ("a", NOON, 1),
        ("c", NOON, 1),
    }
    assert [json.loads(line)["reason"] for line in letters.read_text().splitlines()] == [
        reason for _, reason in REASONS
    ]


@rp.record
class Sender:
    at: rp.Timestamp = rp.field(format="iso")


@rp.record
class Letter:
    name: str
    sender: Sender


def test_records_within_have_forms(tmp_path: Path) -> None:
    rows = [{"name": name, "sender": {"at": at}} for name, at in (("a", GOOD), ("b", BAD))]
    (tmp_path / "letters.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    for place in (rows, str(tmp_path / "letters.jsonl")):
        (batch,) = read(place, Letter)
        assert batch.records.to_pylist() == [{"name": "a", "sender.at": NOON}]
        assert [(bad.offset, bad.reason) for bad in batch.rejected] == [(1, f"sender.{WORDS}")]


class Struct(msgspec.Struct):
    at: Annotated[rp.Timestamp, rp.schema.TimedChecks(format="%d.%m.%Y", zone="UTC")]


@dataclasses.dataclass
class Dataclass:
    at: rp.Timestamp = rp.field(format="%d.%m.%Y", zone="UTC")  # noqa: RUF009 - a field


@pytest.mark.parametrize("cls", [Struct, Dataclass])
def test_classes_of_other_libraries(cls: type) -> None:
    assert rows_of(read([{"at": "31.01.2026"}], cls)) == [{"at": NOON - 43_200_000_000_000}]


def test_what_has_no_form() -> None:
    with pytest.raises(SchemaError, match=r"format is 'isO': it is 'iso', 's', 'ms', 'us', 'ns'"):
        rp.field(format="isO")
    with pytest.raises(SchemaError, match="zone is 'UTC', which is of a format"):
        rp.field(zone="UTC")

    @rp.record
    class Text:
        name: str = rp.field(format="iso")

    with pytest.raises(SchemaError, match="'name' is String, but format is a check of times"):
        read([], Text)
    with pytest.raises(PlanError, match=r"has format='iso', which records of tables cannot have"):
        rp.Pipeline("p").table("orders", Order, key="name")

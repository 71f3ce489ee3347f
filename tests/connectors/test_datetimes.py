"""Fields of ``datetime.datetime``: from each kind of source, to each kind of sink, and between."""

from __future__ import annotations

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
from ripple.connectors.kafka.row_values import row_values
from ripple.connectors.locate import open_sink
from ripple.connectors.memory import MemorySink
from ripple.core.errors import OutputError, PlanError, SchemaError
from ripple.model.schema.logical.times import Nanos
from tests.connectors.read_records import PLACES, rows_and_causes

NOON = 1_769_860_800_000_000_000
AT = dt.datetime(2026, 1, 31, 12, tzinfo=dt.UTC)
FINE = "2026-01-31T12:00:00.123456789Z"
WORDS = "at is no time of ISO 8601 such as 2026-01-31T09:30:00Z"


@rp.record
class Quote:
    name: str
    at: dt.datetime
    sent: dt.datetime | None = rp.field(format="ms", default=None)
    local: dt.datetime | None = rp.field(format="iso", zone="America/New_York", default=None)


ROWS: list[dict[str, Any]] = [
    {"name": "a", "at": "2026-01-31T13:00:00+01:00", "sent": NOON // 10**6, "local": None},
    {"name": "b", "at": "2026-01-31T13:00:00", "sent": None, "local": None},
    {"name": "c", "at": FINE, "sent": None, "local": "2026-01-31T07:00:00"},
]
WANTED = [
    {"name": "a", "at": NOON, "sent": NOON, "local": None},
    {"name": "c", "at": NOON + 123_456_789, "sent": None, "local": NOON},
]


def read(place: Any) -> tuple[list[dict[str, Any]], list[str]]:
    return rows_and_causes(place, Quote)


@pytest.mark.parametrize("kind", PLACES)
def test_texts_and_units_are_times(kind: str, tmp_path: Path) -> None:
    assert read(PLACES[kind](tmp_path, ROWS)) == (WANTED, [WORDS])


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "America/New_York"])
def test_columns_of_times_are_taken(unit: str, zone: str | None, tmp_path: Path) -> None:
    column = pa.array([AT.replace(tzinfo=None), None], pa.timestamp(unit)).cast(
        pa.timestamp(unit, zone)
    )
    table = pa.table({"name": ["a", "b"], "at": column})
    pq.write_table(table, tmp_path / "q.parquet")
    wanted = [{"name": "a", "at": NOON, "sent": None, "local": None}], ["at is empty"]
    assert read(table) == read(str(tmp_path / "q.parquet")) == wanted


def test_a_time_beyond_64_bits_is_a_dead_letter() -> None:
    table = pa.table({"name": ["a"], "at": pa.array([dt.datetime(9999, 1, 1)])})  # noqa: DTZ001
    assert read(table) == ([], [WORDS])


def test_objects_are_times_with_a_zone() -> None:
    east = AT.astimezone(dt.timezone(dt.timedelta(hours=9)))
    rows, causes = read([{"name": "a", "at": AT}, {"name": "b", "at": east}, {"name": "c",
                         "at": AT.replace(tzinfo=None)}])  # fmt: skip
    assert [row["at"] for row in rows] == [NOON, NOON]
    assert causes == [WORDS]
    with pytest.raises(SchemaError, match="'at' must be a time with a zone, not 5"):
        read([{"name": "a", "at": 5}])


def folded() -> rp.Plan:
    quotes = rp.Pipeline("quotes").source("quotes", Quote, out_of_order="1s")
    rows = quotes.derive("more", hour=Quote.at.dt.truncate("1h"), lag=Quote.at - Quote.sent)
    hours = rows.partition("by_hour", key="hour").window("w", rp.Tumbling("1h"))
    return hours.fold("f", last=rp.last("at"), lag=rp.max("lag")).sink("out").plan()


def test_times_leave_as_times(tmp_path: Path) -> None:
    plan, sink = folded(), MemorySink()
    assert plan.source.time_field == "at"
    rp.run(plan, source=[ROWS[0], ROWS[2]], sink=sink)
    types = {field.name: field.type for field in sink.batches[0].schema}
    assert types["hour"] == types["last"] == pa.timestamp("ns", "UTC")
    assert types["window_start_ns"] == types["lag"] == pa.int64()
    for name in ("out.csv", "out.jsonl", "out.parquet"):
        rp.run(plan, source=[ROWS[0], ROWS[2]], sink=str(tmp_path / name))
    names, row = (tmp_path / "out.csv").read_text().splitlines()
    assert names == "hour,window_start_ns,window_end_ns,last,lag"
    assert row == f"2026-01-31T12:00:00.000000000Z,{NOON},{NOON + 3_600 * 10**9},{FINE},0"
    (line,) = (tmp_path / "out.jsonl").read_text().splitlines()
    assert json.loads(line)["last"] == FINE
    kept = pq.read_table(tmp_path / "out.parquet")
    assert kept.schema.field("last").type == pa.timestamp("ns", "UTC")
    assert kept.column("last").cast(pa.int64()).to_pylist() == [NOON + 123_456_789]


def test_functions_of_users_have_datetimes() -> None:
    seen: list[Any] = []

    def later(row: Any) -> Any:
        seen.append(row.at)
        return Quote(row.name, row.at + dt.timedelta(seconds=1) if row.name == "a" else row.at)

    quotes = rp.Pipeline("p").source("quotes", Quote).map("later", later, into=Quote)
    sink = MemorySink()
    rp.run(quotes.partition("p", key="name").fold("f", at=rp.max("at")).sink("o"),
           source=[ROWS[0], ROWS[2]], sink=sink)  # fmt: skip
    found = pa.Table.from_batches(sink.batches).select(["name", "at"]).to_pylist()
    assert {row["name"]: str(row["at"]) for row in found} == {
        "a": "2026-01-31 12:00:01+00:00", "c": "2026-01-31 12:00:00.123456789+00:00"
    }  # fmt: skip
    assert [type(one) for one in seen] == [dt.datetime, Nanos]
    assert seen[1].nanosecond == 789


def test_several_times_are_for_the_source_to_choose() -> None:
    @rp.record
    class Two:
        one: dt.datetime
        other: dt.datetime

    with pytest.raises(SchemaError, match=r"several datetime fields \(one, other\)"):
        rp.Pipeline("p").source("s", Two)
    assert rp.Pipeline("p").source("s", Two, time="one") is not None
    with pytest.raises(PlanError, match="needs a number, not datetime"):
        rp.Pipeline("p").source("s", Two, time="one").partition("p", key="one").fold(
            "f", x=rp.sum("other")
        )


def test_what_holds_less_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="the key 'hour' is a time of nanoseconds, and"):
        open_sink(f"delta:{tmp_path}/d", folded(), "out")


def test_delta_lake_gets_times_in_microseconds(tmp_path: Path) -> None:
    quotes = rp.Pipeline("quotes").source("quotes", Quote, out_of_order="1s")
    nanos = quotes.derive("more", early=(Quote.at.cast(int) * 0 - 1).cast(dt.datetime))
    last = nanos.partition("p", key="name").fold("f", last=rp.last("at"), sent=rp.min("sent"))
    pipeline = nanos.sink("rows").also(last.sink("latest"))
    sinks = {name: f"delta:{tmp_path}/{name}" for name in ("rows", "latest")}
    rp.run(pipeline, source=[ROWS[0], ROWS[2]], sink=sinks)
    table = DeltaTable(f"{tmp_path}/latest").to_pyarrow_table().sort_by("name")
    assert table.schema.field("last").type == pa.timestamp("us", "UTC")
    assert [str(one) for one in table["last"].to_pylist()] == [
        "2026-01-31 12:00:00+00:00",
        "2026-01-31 12:00:00.123456+00:00",
    ]
    assert table["sent"].to_pylist() == [AT, None]
    early = DeltaTable(f"{tmp_path}/rows").to_pyarrow_table()["early"]
    assert early.cast(pa.int64()).to_pylist() == [-1, -1]


def test_messagepack_gets_texts() -> None:
    output = folded().output("out")
    batch = pa.record_batch({"hour": pa.array([AT]), "window_start_ns": [0], "window_end_ns": [1],
                             "last": pa.array([AT]), "lag": [0]})  # fmt: skip
    (value,) = row_values("msgpack", output, "kafka:x").values(batch).to_pylist()
    assert msgspec.msgpack.decode(value)["hour"] == "2026-01-31T12:00:00.000000000Z"

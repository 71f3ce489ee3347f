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

import ripple as rp
from ripple.connectors.kafka.row_values import row_values
from ripple.connectors.locate import open_sink, open_source
from ripple.connectors.memory import MemorySink
from ripple.core.errors import OutputError, PlanError, SchemaError
from ripple.model.batch import Batch
from ripple.model.keys.partitioner import key_bytes
from ripple.model.records import nested_checks_of, schema_of
from ripple.model.schema import DateTime, Field, Schema, fingerprint
from ripple.model.schema.arrow import from_arrow, to_arrow
from ripple.model.schema.avro import from_avro, to_avro
from ripple.model.schema.json_schema import from_json_schema, to_json_schema
from ripple.model.schema.logical.columns import shown, stored, texts_of
from ripple.model.schema.logical.rule import rule_of
from ripple.model.schema.logical.times import Nanos
from ripple.task.one_shot import at_once, entries

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


def read(place: Any, cls: type = Quote) -> tuple[list[dict[str, Any]], list[str]]:
    inputs = open_source(place, schema_of(cls), name="quotes", checks=nested_checks_of(cls))
    try:
        found = [one for one in entries(inputs, 2) if isinstance(one, Batch)]
    finally:
        at_once(inputs.close())
    rows = [row for batch in found for row in batch.records.to_pylist()]
    return rows, [bad.cause for batch in found for bad in batch.rejected]


def lines(folder: Path) -> str:
    (folder / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return str(folder / "q.jsonl")


def csv(folder: Path) -> str:
    said = ({name: "" if one is None else one for name, one in row.items()} for row in ROWS)
    (folder / "q.csv").write_text("".join(",".join(map(str, one.values())) + "\n" for one in said))
    return str(folder / "q.csv")


@pytest.mark.parametrize("made", [csv, lines, lambda _: ROWS])
def test_texts_and_units_are_times(made: Any, tmp_path: Path) -> None:
    assert read(made(tmp_path)) == (WANTED, [WORDS])


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
    assert (tmp_path / "out.csv").read_text().startswith(
        f"2026-01-31T12:00:00.000000000Z,{NOON},{NOON + 3_600 * 10**9},{FINE},0"
    )  # fmt: skip
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
    with pytest.raises(OutputError, match="field 'hour' is a time of nanoseconds, and Delta Lake"):
        open_sink(f"delta:{tmp_path}/d", folded(), "out")


def test_its_name_and_bytes_are_pinned() -> None:
    schema = Schema("q", (Field("at", DateTime()), Field("sent", DateTime(), optional=True)))
    assert fingerprint(schema) == "3898848780b67fd7"
    assert from_arrow(to_arrow(schema)) == schema
    assert from_avro(to_avro(schema)) == schema
    assert from_json_schema(to_json_schema(schema)) == schema
    times = pa.record_batch({"at": pa.array([NOON])})
    assert key_bytes(times, ("at",)).to_pylist() == [NOON.to_bytes(8, "big")]
    column = shown(pa.array([NOON, None]), DateTime())
    assert stored(column, DateTime()).to_pylist() == [NOON, None]
    assert texts_of(pa.array([NOON, None]), DateTime()).to_pylist() == [
        "2026-01-31T12:00:00.000000000Z", None
    ]  # fmt: skip
    rule = rule_of(DateTime())
    for number in (-(1 << 63), -1, 0, NOON + 1, (1 << 63) - 1):
        assert rule.number(rule.value(number)) == number


def test_messagepack_gets_texts() -> None:
    output = folded().output("out")
    batch = pa.record_batch({"hour": pa.array([AT]), "window_start_ns": [0], "window_end_ns": [1],
                             "last": pa.array([AT]), "lag": [0]})  # fmt: skip
    (value,) = row_values("msgpack", output, "kafka:x").values(batch).to_pylist()
    assert msgspec.msgpack.decode(value)["hour"] == "2026-01-31T12:00:00.000000000Z"

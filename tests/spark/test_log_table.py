"""Partitions of a log as a table, read without Spark."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal
from operator import eq, ge, gt, le, lt
from pathlib import Path
from random import Random
from typing import Annotated, Any

import pyarrow as pa
import pytest

import ripple as rp
from ripple.cli.main import main
from ripple.core.errors import InputError
from ripple.model.records import schema_of
from ripple.spark import log_table
from ripple.spark.log_stream import LogStream
from ripple.spark.log_table import LogTable, Split, batches_of
from ripple.spark.options import Bound
from ripple.spark.portions import sources_at
from ripple.storage.log import PartitionWriter, Topic
from ripple.world import LiveClock, LiveDisk
from tests.engine.machine.stage_plans import PLANS, trades
from tests.spark.logs import TRADES, topic_of

PLAN = PLANS["one-total"]
EVENTS = trades(Random(3), 60)
ROWS = (
    TRADES
    + """
rows = rp.Pipeline("rows").source("trades", Trade).partition("by", key="symbol").fold(
    "rows", n=rp.count()).sink("out")
"""
)
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
HOLDS = {"=": eq, "<": lt, "<=": le, ">": gt, ">=": ge}


@pytest.fixture
def place(tmp_path: Path) -> str:
    return topic_of(tmp_path, PLAN, EVENTS, partitions=2)


def rows(table: LogTable) -> list[dict[str, Any]]:
    return [row for one in table.splits for batch in batches_of(one) for row in batch.to_pylist()]


def test_rows_are_records_with_their_place_in_batches_as_asked(place: str) -> None:
    table = LogTable.of({"path": place, "batch_rows": "4"})
    expected = [
        {**event, "partition": number, "offset": at}
        for number in range(2)
        for at, event in enumerate(EVENTS[number::2])
    ]
    assert rows(table) == expected
    assert {batch.num_rows for one in table.splits for batch in batches_of(one)} <= {1, 2, 3, 4}


def test_changes_of_an_output_have_their_cut(place: str, tmp_path: Path) -> None:
    log = f"{tmp_path}/out"
    run = ["run", f"{tmp_path}/p.py", "--source", place, "--sink", f"log:{log}/rows"]
    (tmp_path / "p.py").write_text(ROWS)
    assert main([*run, "--batch", "7", "--checkpoint-dir", f"{tmp_path}/state"]) == 0
    table = LogTable.of({"path": f"{log}/rows", "cut": "true"})
    assert table.schema.names[-3:] == ["partition", "offset", "cut"]
    found = rows(table)
    cuts = [sum(json.loads(row["cut"]).values()) for row in found]
    assert cuts == sorted(cuts)
    assert cuts[-1] == len(EVENTS)
    assert 1 < len(set(cuts)) <= len(EVENTS)
    stream = LogStream.of({"path": f"{log}/rows", "cut": "true", "columns": "symbol,cut"})
    splits = stream.splits({}, stream.ends())
    assert [row["cut"] for one in splits for batch in batches_of(one) for row in batch.to_pylist()
            ] == [row["cut"] for row in found]  # fmt: skip
    assert {row["cut"] for row in rows(LogTable.of({"path": place, "cut": "true"}))} == {None}


def test_columns_are_chosen_and_times_have_timestamps_beside_them(place: str) -> None:
    table = LogTable.of({"path": place, "columns": "offset,t_time,symbol,t", "timestamps": "true"})
    assert table.schema.names == ["offset", "t_time", "symbol", "t"]
    for row in rows(table.narrowed("offset", "<", 9)):
        assert row["t_time"] == EPOCH + dt.timedelta(microseconds=row["t"] // 1000)
    whole = LogTable.of({"path": place, "timestamps": "TRUE"})
    plain = LogTable.of({"path": place}).schema.names
    assert [name for name in whole.schema.names if name not in plain] == ["t_time"]
    before = log_table._micros(pa.array([-1, None, -1000, 1999]))
    assert before.cast(pa.int64()).to_pylist() == [-1, None, -1, 1]
    for wrong, expected in [
        ({"columns": "symbol,none"}, "has no column 'none': there are "),
        ({"columns": "t_time"}, "has no column 't_time'"),
        ({"columns": "symbol,symbol"}, "columns has names, each once"),
        ({"timestamps": "1"}, "timestamps must be true or false"),
    ]:
        with pytest.raises(InputError, match=expected):
            LogTable.of({"path": place, **wrong})


@pytest.mark.parametrize(
    ("column", "operation", "value"),
    [("partition", op, 1) for op in HOLDS] + [("offset", op, 17) for op in HOLDS],
)
def test_pushed_down_filter_keeps_exactly_the_matching_records(
    place: str, column: str, operation: str, value: int
) -> None:
    whole = LogTable.of({"path": place})
    expected = [row for row in rows(whole) if HOLDS[operation](row[column], value)]
    assert rows(whole.narrowed(column, operation, value)) == expected


def test_conditions_on_time_lose_no_record(place: str) -> None:
    whole = LogTable.of({"path": place})
    now = EVENTS[40]["t"]
    left = rows(whole.narrowed("t", ">", now))
    assert [row for row in rows(whole) if row["t"] > now] == [row for row in left if row["t"] > now]
    assert len(left) < 60
    assert rows(whole.narrowed("t", "<", now)) == rows(whole)


def test_a_range_is_of_offsets_partitions_or_time(place: str) -> None:
    taken = LogTable.of({"path": place, "partitions": "1", "from": "1=3", "to": "5"})
    assert [(row["partition"], row["offset"]) for row in rows(taken)] == [(1, 3), (1, 4)]
    assert Bound.parse("1970-01-01T00:00:01.000002Z", "x") == Bound(time_ns=1_000_002_000)
    assert Bound.parse("1970-01-01T01:00:01+01:00", "x") == Bound(time_ns=1_000_000_000)
    assert Bound.parse("17ns", "x") == Bound(time_ns=17)
    for wrong in ("", "soon", "1=", "a=3", "-1", "1_0"):
        with pytest.raises(InputError):
            Bound.parse(wrong, "x")


def test_a_source_says_what_it_lacks(place: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="ends at offset 30, and 31 was requested"):
        sources_at(place, PLAN, stop=Bound(offset=31))
    with pytest.raises(InputError, match="ends at offset 30, and 40 was requested"):
        sources_at(place, PLAN, start=Bound(offset=40))
    with pytest.raises(InputError, match="there is no such file"):
        sources_at(f"{tmp_path}/missing.csv", PLAN)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="there are no files at"):
        sources_at(f"csv:{tmp_path}/empty", PLAN)
    with pytest.raises(InputError, match="cannot be searched by time"):
        sources_at("synthetic:5", PLAN, start=Bound(time_ns=1))


def test_files_of_a_folder_are_one_input_unless_records_are_sorted(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv", "_SUCCESS", ".hidden"):
        (tmp_path / name).write_text("")
    for place in (f"csv:{tmp_path}", str(tmp_path), f"{tmp_path}/*.csv"):
        found = sources_at(place, PLAN)
        (share,) = found.shares
        assert share.place.startswith(f"files:{tmp_path}")
        assert found.divided_anew(PLAN) is None
    apart = sources_at(f"csv:{tmp_path}", PLAN, files_apart=True)
    assert [share.place for share in apart.shares] == [
        f"csv:{tmp_path}/a.csv",
        f"csv:{tmp_path}/b.csv",
    ]
    assert apart.divided_anew(PLAN) is not None
    assert sources_at(f"csv:{tmp_path}/a.csv", PLAN).divided_anew(PLAN) is None
    (tmp_path / "c.jsonl").write_text("")
    with pytest.raises(InputError, match="read files of one format"):
        sources_at(str(tmp_path), PLAN)


@rp.record
class Paid:
    day: dt.date
    at: dt.datetime
    price: Annotated[Decimal, rp.Decimal(12, 4)] | None


def test_dates_and_decimals_are_columns_of_their_own(tmp_path: Path) -> None:
    topic = Topic.create(LiveDisk(tmp_path), "paid", schema_of(Paid))
    with PartitionWriter(topic, 0, LiveClock()) as writer:
        writer.append(pa.RecordBatch.from_pydict({"day": [1], "at": [7], "price": [15_000]}))
        writer.append(pa.RecordBatch.from_pydict({"day": [-1], "at": [8], "price": [None]}))
    table = LogTable.of({"path": f"{tmp_path}/paid"})
    assert table.schema.field("price").type == pa.decimal128(12, 4)
    assert [(row["day"], row["at"], row["price"]) for row in rows(table)] == [
        (dt.date(1970, 1, 2), 7, Decimal("1.5000")),
        (dt.date(1969, 12, 31), 8, None),
    ]


def test_a_stream_has_each_record_once_in_ranges_that_can_be_repeated(place: str) -> None:
    stream = LogStream.of({"path": place, "from": "0=3"})
    begin, end = stream.begin(), stream.ends()
    assert (begin, end) == ({"0": 3, "1": 0}, {"0": 30, "1": 30})
    middle = {"0": 9, "1": 0}
    parts = [stream.splits(begin, middle), stream.splits(middle, end), stream.splits(end, end)]
    assert [[one.partition for one in part] for part in parts] == [[0], [0, 1], []]
    found = [row for part in parts for one in part for row in rows_of(one)]
    whole = rows(LogTable.of({"path": place, "from": "0=3"}))
    assert sorted(found, key=repr) == sorted(whole, key=repr)
    with pytest.raises(InputError, match="a stream has no end"):
        LogStream.of({"path": place, "to": "9"})
    with pytest.raises(InputError, match="ends at offset 30, and the query has read to 31"):
        stream.splits({**end, "1": 31}, end)


def rows_of(split: Split) -> list[dict[str, Any]]:
    return [row for batch in batches_of(split) for row in batch.to_pylist()]

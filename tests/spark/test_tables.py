"""Tables from topics on Spark: replays show what one process shows, and checks hold."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import ripple as rp
from ripple.core.errors import InputError, PlanError
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.model.pipeline.file import load_plan
from ripple.model.pipeline.plan import Plan
from ripple.spark.checkpoint_check import AgainstCheckpoints, checkpoints_at
from ripple.spark.crashes import Crashes
from ripple.spark.finding import OUR_ENGINE
from ripple.spark.log_table import open_topic
from ripple.spark.oracle_check import AgainstOracle
from ripple.spark.output_check import AgainstLog
from ripple.spark.parcel import Parcel
from ripple.spark.portions import sources_at
from ripple.spark.report import digests_of
from ripple.spark.starting_point import StartingPoint
from ripple.spark.streaming.resident import here
from ripple.storage.log import PartitionReader
from tests.spark.here import replayed
from tests.spark.logs import topic_of, whole_engine
from tests.spark.streams import stream_of, turns

PIPELINES = """
import ripple as rp

@rp.record(version=1)
class Item:
    id: int
    group: str | None
    price: float | None = rp.field(gt=0)
    gone: bool
    at: int

def items(name, **how):
    return rp.Pipeline(name).table("trades", Item, key="id", deleted="gone", **how)

def sums(rows):
    by = rows.derive("named", of=rp.col("group").fill_null("-")).partition("p", key="of")
    return by.fold("sums", n=rp.count(), most=rp.arg_max("price", "id")).sink("sums-out")

rows = items("rows").sink("rows-out")
stages = sums(items("stages"))
timed = items("timed", time="at", out_of_order=3, ttl=20)
versions = timed.sink("rows-out").also(
    timed.versions("changes").sink("changes-out").partition("v", key="id")
    .window("w", rp.Tumbling(10), lateness=4).fold("bars", n=rp.count()).sink("bars-out")
)
"""
NAMES = ("rows", "stages", "versions")


def changes(count: int) -> list[dict[str, Any]]:
    chance = Random(count)
    return [
        {
            "id": chance.randrange(9),
            "group": chance.choice(["a", "b", None]),
            "price": chance.choice([1.0, 2.5, None, -1.0]),
            "gone": chance.random() < 0.25,
            "at": at // 2 + chance.randrange(6),
        }
        for at in range(count)
    ]


def held(folder: Path, name: str) -> tuple[Plan, Parcel]:
    file = folder / "p.py"
    file.write_text(PIPELINES)
    place = f"{file}:{name}"
    return load_plan(place), Parcel.of(place, lambda plan: b"", has_tables=True)


def shares_of(place: str) -> list[pa.RecordBatch]:
    topic, _ = open_topic(place)
    found = []
    for partition in range(topic.partitions):
        with PartitionReader(topic, partition) as reader:
            found.append(pa.concat_batches([entry.records for entry in reader.read()]))
    return found


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("key", [("id",), ()])
def test_a_replay_shows_what_one_process_shows(
    tmp_path: Path, name: str, key: tuple[str, ...]
) -> None:
    plan, parcel = held(tmp_path, name)
    place = topic_of(tmp_path, plan, changes(150), partitions=3, key=key)
    sources = sources_at(place, plan)
    is_divided = bool(key) and name != "versions"  # keys that end do so by one watermark
    assert len(sources.portions(plan)) == (3 if is_divided else 1)
    assert (sources.together_why(plan) is None) == is_divided
    report, rows, letters = replayed(parcel, plan, sources, closes=False)
    whole = whole_engine(plan, shares_of(place), closes=False)
    assert report.digests == whole.digests
    assert len(letters) == whole.counters.dead_lettered > 10
    assert report.counters["consumed"] == 150
    for output in plan.outputs:
        if not output.is_stream and output.name != "bars-out":
            expected = sorted(whole.table(output.name).to_pylist(), key=repr)
            assert rows[output.name] == expected


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("key", [("id",), ()])
def test_each_micro_batch_equals_a_replay(tmp_path: Path, name: str, key: tuple[str, ...]) -> None:
    plan, _ = held(tmp_path, name)
    topic_of(tmp_path, plan, changes(150), partitions=3, key=key)
    file, partitions = f"{tmp_path / 'p.py'}:{name}", 3 if key and name == "rows" else 1
    sinks = {output.name: f"log:{tmp_path}/out/{output.name}" for output in plan.outputs}
    stream = stream_of(file, str(tmp_path), partitions, sinks=sinks, batch_rows=11)
    last = dict[int, dict[str, Any]]()
    for number, turn in enumerate(turns(stream, 3), 1):
        last[turn.partition] = turn.run()
        here().drop(turn)  # another process resumes from the store
        if number % partitions:
            continue
        sources = sources_at(f"log:{tmp_path}/trades", plan, cut=stream.store)
        report, _, _ = replayed(stream.parcel, plan, replace(sources, is_open=True), closes=False)
        assert digests_of(plan, last.values())[1] == report.digest
    assert report.counters["consumed"] == 150
    if partitions == 1 and not key:
        with pytest.raises((InputError, PlanError), match=r"by nothing|several stages|one key"):
            stream_of(file, str(tmp_path), 3, sinks=sinks)


def lines(path: Path) -> dict[Any, Any]:
    """Return the rows that lines of changes lead to."""
    rows: dict[Any, Any] = {}
    for line in path.read_text().splitlines():
        row = json.loads(line)
        if row.pop("op") == "remove":
            del rows[row["id"]]
        else:
            rows[row["id"]] = row
    return rows


def test_files_of_json_and_parquet_are_tables_as_in_one_process(tmp_path: Path) -> None:
    plan, parcel = held(tmp_path, "rows")
    given = changes(120)
    table = pa.Table.from_pylist(given, pa.schema(arrow_fields(plan.source.fields)))
    (tmp_path / "in").mkdir()
    parts = []
    for number in range(2):
        parts.append(tmp_path / "in" / f"{number}.jsonl")
        some = given[number * 60 : number * 60 + 60]
        parts[-1].write_text("".join(f"{json.dumps(one)}\n" for one in some))
    pa.parquet.write_table(table, tmp_path / "all.parquet")
    (tmp_path / "all.jsonl").write_text("".join(part.read_text() for part in parts))
    rp.run(
        plan,
        source=str(tmp_path / "all.jsonl"),
        sink={"rows-out": tmp_path / "out.jsonl"},
        dead_letters=str(tmp_path / "letters.jsonl"),
    )
    expected = sorted(lines(tmp_path / "out.jsonl").values(), key=repr)
    for place in (tmp_path / "all.jsonl", tmp_path / "all.parquet", tmp_path / "in"):
        _, rows, _ = replayed(parcel, plan, sources_at(str(place), plan))
        assert rows["rows-out"] == expected
    several = sources_at(str(tmp_path / "in"), plan, files_apart=True)
    assert "several files, which are not divided by key" in str(several.together_why(plan))
    (portion,) = several.portions(plan)
    assert len(portion.shares) == 2


def found(job: Any) -> Any:
    (packet,) = job.run()
    return packet.about


@pytest.mark.parametrize("name", NAMES)
def test_a_durable_run_holds_against_all_checks(tmp_path: Path, name: str) -> None:
    plan, parcel = held(tmp_path, name)
    place = topic_of(tmp_path, plan, changes(200), partitions=3, key=("id",))
    logs = {output.name: f"log:{tmp_path}/out/{output.name}" for output in plan.outputs}
    rp.run(plan, source=place, sink=logs, checkpoint_dir=tmp_path / "state")
    sources, cases = sources_at(place, plan), 0
    for portion in sources.portions(plan):
        crashes = found(Crashes(parcel, portion, 5, seed=3))
        assert (crashes["differences"], crashes["cases"]) == ([], 6)
        oracle = found(AgainstOracle(parcel, portion, 60))
        assert oracle["differences"] == []
        cases += oracle["cases"]
    assert cases > 5
    for output, log in logs.items():
        assert found(AgainstLog(parcel, sources.shares, output, log, 0))["differences"] == []
    store, begun = checkpoints_at(f"checkpoints:{tmp_path}/state", plan)
    own = StartingPoint.of(store, plan.name, begun)
    for number in begun:
        job = AgainstCheckpoints(parcel, sources.shares, store, plan.name, number, OUR_ENGINE, own)
        assert found(job)["differences"] == []


def test_what_reads_no_tables_on_spark_refuses_them_in_one_line(tmp_path: Path) -> None:
    held(tmp_path, "rows")
    with pytest.raises(PlanError, match="'rows' reads the table 'trades', and a watch on Spark, "):
        Parcel.of(f"{tmp_path}/p.py:rows", lambda plan: b"")

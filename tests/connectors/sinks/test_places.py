"""Sinks by place: from what a user writes to rows of a real pipeline."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import ripple as rp
from ripple.connectors.contract import Commit
from ripple.connectors.files.text.sink import TextFormat, TextSink
from ripple.connectors.locate import open_sink, open_source
from ripple.connectors.log.sink import schema_of_output
from ripple.connectors.target import open_target
from ripple.core.errors import OutputError
from ripple.engine.machine import Engine
from ripple.model.pipeline.plan import Plan
from ripple.storage.log import PartitionReader, PartitionWriter, StaleEpochError, Topic
from ripple.task.one_shot import entries
from ripple.task.run import run
from ripple.world import DiskLockedError, LiveDisk
from tests.records import Fill
from tests.storage.log.trades import ManualClock, listed


def plan_of(name: str = "vwap", output: str = "out", *, extra: bool = False) -> Plan:
    more: dict[str, Any] = {"total": rp.sum("size")} if extra else {}
    return (
        rp.Pipeline(name)
        .source("trades", Fill)
        .partition("by", key="symbol")
        .fold("f", vwap=rp.vwap("price", "size"), **more)
        .sink(output)
        .plan()
    )


TRADES = [
    {"symbol": symbol, "price": 1.5 * size, "size": size, "timestamp_ns": size}
    for size, symbol in enumerate("ABACABCCB", 1)
]


continued = partial(open_sink, continues=True)


def lived(place: str, plan: Plan, end: int) -> None:
    """Run to ``end`` and stop without a commit of the last two cuts, as a killed process does."""
    sink = continued(place, plan, "out")
    done = sink.committed.cut["trades"] if sink.committed is not None else 0
    engine = Engine(plan)
    source = open_source(TRADES[:end], plan.source.schema, name="trades", batch_rows=1)
    for batch in entries(source, 1):
        engine.apply("trades", batch.records, batch.next_offset, batch.offsets())
        changes = engine.stabilize()
        reached = Commit(changes.cut, engine.digest)
        if reached.cut["trades"] > done:
            sink.write(changes.outputs["out"], reached)
            if reached.cut["trades"] <= end - 2:
                sink.commit(reached)
    sink.close()


@pytest.mark.parametrize("name", ["out.csv", "out.jsonl"])
def test_file_of_a_restarted_pipeline_equals_that_of_a_one_shot_run(
    tmp_path: Path, name: str
) -> None:
    place, plain = tmp_path / name, tmp_path / f"plain-{name}"
    for end in (3, 6, len(TRADES)):
        lived(str(place), plan_of(), end)
    run(plan_of(), source=TRADES, sink=plain, batch_rows=1)
    assert place.read_bytes() == plain.read_bytes()


def rows_in(folder: Path, topic: str) -> list[Any]:
    with PartitionReader(Topic.open(LiveDisk(folder), topic), 0) as reader:
        return [row for entry in reader.read() for row in listed(entry)]


def test_log_of_a_restarted_pipeline_equals_that_of_a_one_shot_run(tmp_path: Path) -> None:
    for end in (3, 6, len(TRADES)):
        lived(f"log:{tmp_path}/out", plan_of(), end)
    run(plan_of(), source=TRADES, sink=f"log:{tmp_path}/plain", batch_rows=1)
    rows = rows_in(tmp_path, "out")
    assert rows == rows_in(tmp_path, "plain")
    assert rows[0] == {"op": "set", "symbol": "A", "vwap": 1.5}
    assert len(rows) == len(TRADES)


def test_another_pipeline_feeds_on_the_log(tmp_path: Path) -> None:
    run(plan_of(), source=TRADES, sink=f"log:{tmp_path}/out", batch_rows=1)

    @rp.record(version=1)
    class Shown:
        op: str
        symbol: str

    counting = (
        rp.Pipeline("counting")
        .source("shown", Shown)
        .filter("set", rp.col("op") == "set")
        .partition("by", key="symbol")
        .fold("f", n=rp.count())
        .sink("n")
    )
    run(counting, source=f"log:{tmp_path}/out", sink=tmp_path / "n.csv")
    assert (tmp_path / "n.csv").read_text() == "symbol,n\nA,3\nB,3\nC,3\n"


def test_two_pipelines_cannot_share_an_output(tmp_path: Path) -> None:
    for place in (f"{tmp_path}/out.csv", f"log:{tmp_path}/out"):
        held = continued(place, plan_of(), "out")
        with pytest.raises(DiskLockedError, match="output 'out' of pipeline 'vwap'"):
            continued(place, plan_of(), "out")
        held.close()
        lived(place, plan_of(), 4)
        for other in (plan_of("other"), plan_of(output="second")):
            with pytest.raises(OutputError, match="belongs to output 'out' of pipeline 'vwap'"):
                continued(place, other, other.outputs[0].name)
    with pytest.raises(OutputError, match="belongs to output 'out' of pipeline 'vwap'"):
        open_sink(f"log:{tmp_path}/out", plan_of(), "out")


def test_one_shot_run_does_not_replace_a_durable_output(tmp_path: Path) -> None:
    place = tmp_path / "out.csv"
    lived(str(place), plan_of(), 4)
    before = place.read_bytes()
    with pytest.raises(OutputError, match=r"out\.csv\.cut says that a pipeline continues it"):
        run(plan_of(), source=TRADES, sink=place)
    assert place.read_bytes() == before


def test_uncommitted_log_has_an_owner(tmp_path: Path) -> None:
    lived(f"log:{tmp_path}/out", plan_of(), 2)
    for attempt in (open_sink, continued):
        with pytest.raises(OutputError, match="belongs to output 'out' of pipeline 'vwap'"):
            attempt(f"log:{tmp_path}/out", plan_of("other"), "out")


def test_output_of_other_columns_is_rejected(tmp_path: Path) -> None:
    for place, words in (
        (f"{tmp_path}/out.csv", "has the columns symbol, vwap, but the output has symbol, vwap, t"),
        (f"log:{tmp_path}/out", "has the fields op, symbol, vwap, the output has op, .*, total"),
    ):
        lived(place, plan_of(), 4)
        with pytest.raises(OutputError, match=words):
            continued(place, plan_of(extra=True), "out")


def test_records_of_others_are_not_continued(tmp_path: Path) -> None:
    run(plan_of(), source=TRADES, sink=f"log:{tmp_path}/out")
    with pytest.raises(OutputError, match="holds records that no output has written"):
        continued(f"log:{tmp_path}/out", plan_of(), "out")


@pytest.mark.parametrize(
    ("place", "words"),
    [
        (
            "out.csv.gz",
            "it must be a .csv, .jsonl or .parquet file, csv:FILE, jsonl:FILE, parquet:F",
        ),
        (
            "out",
            "it must be a .csv, .jsonl or .parquet file, csv:FILE, jsonl:FILE, parquet:F",
        ),
        ("absent/out.csv", "there is no folder .*absent"),
        ("folder.csv", "name another file"),
        ("folder.csv/none/out.parquet", "there is no folder .*none"),
    ],
)
def test_output_that_cannot_be_resumed_is_rejected(tmp_path: Path, place: str, words: str) -> None:
    (tmp_path / "folder.csv").mkdir()
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(OutputError, match=words):
        continued(str(tmp_path / place), plan_of(), "out")
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("several", "choose one of its 2 partitions, as in log:.*/0"),
        ("several/2", "no partition 2"),
    ],
)
def test_partition_must_be_there(tmp_path: Path, place: str, words: str) -> None:
    plan = plan_of()
    schema = schema_of_output(plan, plan.outputs[0])
    Topic.create(LiveDisk(tmp_path), "several", schema, partitions=2)
    with pytest.raises(OutputError, match=words):
        continued(f"log:{tmp_path}/{place}", plan_of(), "out")
    continued(f"log:{tmp_path}/several/1", plan_of(), "out").close()


PLACES = ["out.csv", "out.jsonl", "log:out"]


def place_in(folder: Path, place: str) -> str:
    return f"log:{folder}/out" if place == "log:out" else f"{folder}/{place}"


@pytest.mark.parametrize("place", PLACES)
def test_run_without_writes_leaves_no_output(tmp_path: Path, place: str) -> None:
    """The run has failed: at the next output, or before its first batch."""
    where = place_in(tmp_path, place)
    for _ in range(2):
        continued(where, plan_of(), "out").close()
        assert list(tmp_path.iterdir()) == []
    open_sink(where, plan_of(), "out").close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", PLACES)
def test_written_output_stays(tmp_path: Path, place: str) -> None:
    where = place_in(tmp_path, place)
    sink = continued(where, plan_of(), "out")
    nothing = Commit({"trades": 0}, "")
    sink.commit(nothing)
    sink.close()
    before = sorted(tmp_path.rglob("*"))
    assert before
    sink = continued(where, plan_of(), "out")
    assert sink.committed == nothing
    sink.close()
    assert sorted(tmp_path.rglob("*")) == before


def test_existing_topic_stays(tmp_path: Path) -> None:
    plan = plan_of()
    Topic.create(LiveDisk(tmp_path), "out", schema_of_output(plan, plan.outputs[0]))
    continued(f"log:{tmp_path}/out", plan, "out").close()
    open_sink(f"log:{tmp_path}/out", plan, "out").close()
    Topic.open(LiveDisk(tmp_path), "out")


def test_users_files_in_a_topics_folder_stay(tmp_path: Path) -> None:
    for name in ("out/mine.txt", "out/0/mine.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("my own")
    before = sorted(tmp_path.rglob("*"))
    continued(f"log:{tmp_path}/out", plan_of(), "out").close()
    assert sorted(tmp_path.rglob("*")) == before


def test_topic_that_cannot_have_the_partition_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="has only partition 0"):
        continued(f"log:{tmp_path}/out/3", plan_of(), "out")
    assert list(tmp_path.iterdir()) == []


def test_promise_of_a_stream_allows_repeated_lines(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    sink = continued(str(pipe), plan_of(), "out", header=True)
    assert (sink.records_cut, sink.committed, sink.unfinished) == (False, None, None)
    assert "may be repeated after a restart" in sink.promise
    engine = Engine(plan_of())
    batch = next(entries(open_source(TRADES, plan_of().source.schema, name="t"), 1000))
    engine.apply("trades", batch.records, batch.next_offset, batch.offsets())
    changes = engine.stabilize()
    sink.write(changes.outputs["out"], Commit(changes.cut, ""))
    sink.commit(Commit(changes.cut, ""))
    assert sink.committed is None
    assert os.read(reader, 1000).startswith(b"symbol,vwap\nA,")
    sink.close()
    os.close(reader)


def test_damaged_log_cannot_be_written(tmp_path: Path) -> None:
    lived(f"log:{tmp_path}/out", plan_of(), 5)
    topic = Topic.open(LiveDisk(tmp_path), "out")
    with PartitionWriter(topic, 0, ManualClock()):
        pass
    segment = next((tmp_path / "out" / "0").glob("*.log"))
    data = bytearray(segment.read_bytes())
    data[100] ^= 1
    segment.write_bytes(data)
    with pytest.raises(OutputError, match=r"cannot write log:.* is damaged at byte"):
        continued(f"log:{tmp_path}/out", plan_of(), "out")


@pytest.mark.parametrize("name", ["out.csv", "out.jsonl", "out.parquet", "/dev/null"])
def test_output_without_seals_is_rejected_for_an_owner(tmp_path: Path, name: str) -> None:
    place = str(tmp_path / name)
    for continues in {False, not name.endswith("parquet")}:
        with pytest.raises(OutputError, match=r"owner of epoch 3.*log:DIR/TOPIC"):
            open_sink(place, plan_of(), "out", continues=continues, epoch=3)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(OutputError, match="owner of epoch 3"):
        open_sink(TextSink(open_target("-"), TextFormat("csv")), plan_of(), "out", epoch=3)


def test_log_is_taken_over_by_its_next_owner(tmp_path: Path) -> None:
    place = f"log:{tmp_path}/out"
    old = open_sink(place, plan_of(), "out", continues=True, epoch=3)
    with pytest.raises(DiskLockedError):
        open_sink(place, plan_of(), "out", continues=True)
    with pytest.raises(StaleEpochError, match=r"epoch 2 .* epoch 3"):
        open_sink(place, plan_of(), "out", continues=True, epoch=2)
    open_sink(place, plan_of(), "out", continues=True, epoch=4).close()
    with pytest.raises(StaleEpochError, match=r"epoch 3 .* epoch 4"):
        old.commit(Commit({"trades": 1}, "0" * 16))
    old.close()

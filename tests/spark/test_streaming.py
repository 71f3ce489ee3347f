"""Micro-batches go on from the state of runs and give it back, whatever is killed between them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from ripple.cli.main import main
from ripple.core.errors import InputError, OutputError, PlanError
from ripple.engine.operators.arrow_types import arrow_fields
from ripple.model.pipeline.file import load_plan
from ripple.spark.log_table import open_topic
from ripple.spark.output_check import Divided
from ripple.spark.portions import sources_at
from ripple.spark.report import digests_of
from ripple.spark.streaming import calls
from ripple.spark.streaming.resident import here
from ripple.spark.streaming.turn import Turn
from ripple.storage.log import LogSettings, PartitionReader, PartitionWriter, StaleEpochError, Topic
from ripple.world import LiveClock, LiveDisk
from tests.spark.here import replayed
from tests.spark.logs import topic_of
from tests.spark.streams import ROWS, SOURCE, events, nobody, stream_of, turns

# A process that has loaded all there is to load, and forks for each line that it is given.
LIVES = """
import os, sys
from tests.spark.test_streaming import stream_of, turns
file, folder, partitions, steps = sys.argv[1:5]
while sys.stdin.readline():
    if child := os.fork():
        os.waitpid(child, 0)
        print("ended", flush=True)
        continue
    stream = stream_of(file, folder, int(partitions))
    print(os.getpid(), flush=True)
    for turn in turns(stream, int(steps)):
        turn.run()
    print("done", flush=True)
    sys.stdin.read()
"""


def run(file: str, folder: Path, to: str, *more: str) -> None:
    arguments = ["--source", f"log:{folder}/trades", "--sink", f"log:{folder}/{to}"]
    assert main(["run", file, *arguments, "--batch", "50", *more]) == 0


def written(place: str) -> list[pa.Table]:
    """Return all that a log holds, by partition."""
    topic, _ = open_topic(place)
    found = []
    for partition in range(topic.partitions):
        with PartitionReader(topic, partition) as reader:
            found.append(pa.Table.from_batches([one.records for one in reader.read()]))
    return found


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "streamed.py"
    path.write_text(SOURCE)
    topic_of(tmp_path, load_plan(f"{path}:running"), events(ROWS), partitions=2, key=["symbol"])
    return str(path)


@pytest.mark.parametrize("kind", ["running", "tumbling", "session"])
@pytest.mark.parametrize("partitions", [1, 2])
def test_micro_batches_come_to_what_one_run_comes_to(
    kind: str, partitions: int, file: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pipeline = f"{file}:{kind}"
    stream = stream_of(pipeline, str(tmp_path), partitions)
    last: dict[int, dict[str, Any]] = {}
    for turn in turns(stream, 3):
        last[turn.partition] = turn.run()
    plan = stream.parcel.plan()
    digest = digests_of(plan, last.values())[1]
    if partitions == 1:
        run(pipeline, tmp_path, "alone", "--checkpoint-dir", f"{tmp_path}/other")
        assert digest in capfd.readouterr().err
    else:
        shares = sources_at(dict(stream.sources), plan)
        assert digest == replayed(stream.parcel, plan, shares, closes=False)[0].digest
    assert sum(one["counters"]["consumed"] for one in last.values()) == ROWS
    assert {one["epoch"] for one in last.values()} == {1}  # one life for all of them
    for turn in turns(stream, 1):
        assert turn.run()["events"] == 0  # a task that comes again does nothing again
        here().drop(turn)


def test_the_lag_of_a_partition_without_records_is_unknown(file: str, tmp_path: Path) -> None:
    given = [{**one, "symbol": "A"} for one in events(9)]
    topic_of(tmp_path / "one", load_plan(f"{file}:running"), given, partitions=2, key=["symbol"])
    place = f"log:{tmp_path}/one/trades"
    stream = stream_of(f"{file}:running", str(tmp_path), 2, source=place)
    found = {}
    for turn in turns(stream, 1):
        found[turn.partition] = turn.run()
        here().drop(turn)
    empty, full = sorted(found.values(), key=lambda one: one["events"])
    assert (empty["events"], empty["lag_ns"]) == (0, None)
    assert full["lag_ns"] + full["watermark_ns"] > 1_700_000_000 * 10**9  # the clock


@pytest.mark.parametrize("partitions", [1, 2])
def test_branches_in_micro_batches_come_to_what_a_replay_comes_to(
    partitions: int, file: str, tmp_path: Path
) -> None:
    sinks = {name: f"log:{tmp_path}/{name}" for name in ("out", "events", "last-out")}
    stream = stream_of(f"{file}:branches", str(tmp_path), partitions, sinks=sinks)
    last: dict[int, dict[str, Any]] = {}
    for turn in turns(stream, 3):
        last[turn.partition] = turn.run()
        here().drop(turn)  # another process goes on
    plan = stream.parcel.plan()
    report, rows, _ = replayed(
        stream.parcel, plan, sources_at(dict(stream.sources), plan), closes=False
    )
    assert digests_of(plan, last.values())[1] == report.digest
    events_written = [row for one in written(sinks["events"]) for row in one.to_pylist()]
    assert sorted(events_written, key=repr) == rows["events"]
    assert len(rows["events"]) > ROWS // 4


def test_branches_that_do_not_fit_the_partitions_are_refused(file: str, tmp_path: Path) -> None:
    sinks = {"out": f"log:{tmp_path}/out", "sizes": f"log:{tmp_path}/sizes"}
    with pytest.raises(InputError, match=r"partition by partition.*by-size needs all of one size"):
        stream_of(f"{file}:others", str(tmp_path), 2, sinks=sinks)
    assert stream_of(f"{file}:others", str(tmp_path), 1, sinks=sinks).partitions == 1


@pytest.mark.parametrize(
    ("name", "why", "takes"),
    [
        ("distinct", "records of trades are divided by symbol, and once needs all of one size", 1),
        ("elsewhere", "it is partitioned by symbol, but the pipeline says that trades is part", 0),
    ],
)
def test_partitions_that_do_not_fit_are_refused_naming_a_cluster_that_takes_them(
    name: str, why: str, takes: int, file: str, tmp_path: Path
) -> None:
    remedy = "; give 1 partition, which has all stages" + takes * ", or run it in a cluster"
    with pytest.raises(InputError, match=f"by partition: {why}.*{remedy}$"):
        stream_of(f"{file}:{name}", str(tmp_path), 2)
    assert stream_of(f"{file}:{name}", str(tmp_path), 1).partitions == 1


def test_a_pipeline_goes_from_a_run_to_micro_batches_and_back_with_its_state(
    file: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pipeline = f"{file}:tumbling"
    stream = stream_of(pipeline, str(tmp_path), 1)
    first, second = turns(stream, 2)
    assert first.run()["events"] == ROWS // 2
    here().drop(first)
    kept = ("--checkpoint-dir", f"{tmp_path}/state")
    run(pipeline, tmp_path, "out", *kept)
    assert f"Events processed:  {ROWS - ROWS // 2}, {ROWS} in all" in capfd.readouterr().err
    found = second.run()
    assert (found["events"], found["restored"]) == (0, found["restored"])
    assert "the beginning" not in found["restored"]
    here().drop(second)
    run(pipeline, tmp_path, "alone", "--checkpoint-dir", f"{tmp_path}/other")
    assert f"Digest:            {digests_of(stream.parcel.plan(), [found])[1]}" in (
        capfd.readouterr().err
    )


def test_fenced_task_writes_nothing_more(file: str, tmp_path: Path) -> None:
    stream = stream_of(f"{file}:running", str(tmp_path), 1)
    first, second = turns(stream, 2)
    first.run()
    others = started(f"{file}:running", tmp_path, 1, 3)
    assert others.stdout is not None
    other = next_life(others)
    assert others.stdout.readline() == "done\n"
    before = written(f"log:{tmp_path}/out")
    with pytest.raises(StaleEpochError):
        second.run()
    assert written(f"log:{tmp_path}/out") == before
    os.kill(other, signal.SIGKILL)
    others.communicate()
    assert second.run()["events"] == 0


def started(file: str, folder: Path, partitions: int, steps: int) -> subprocess.Popen[str]:
    """Start what runs all turns in each of its lives."""
    return subprocess.Popen(
        [sys.executable, "-c", LIVES, file, str(folder), str(partitions), str(steps)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )


def next_life(process: subprocess.Popen[str]) -> int:
    """Let the next life begin; return its process id."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return int(process.stdout.readline())


@pytest.mark.services
def test_processes_killed_between_any_two_effects_leave_no_trace(
    file: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pipeline, chance = f"{file}:tumbling", Random(11)
    interrupted = 0
    process = started(pipeline, tmp_path, 2, 12)
    assert process.stdout is not None
    for _ in range(6):
        life = next_life(process)
        time.sleep(chance.uniform(0.0, 0.5))
        os.kill(life, signal.SIGKILL)
        found = process.stdout.readline()
        interrupted += found == "ended\n"
        assert found == "ended\n" or process.stdout.readline() == "ended\n"
    process.communicate()
    assert interrupted
    stream = stream_of(pipeline, str(tmp_path), 2)
    last = [turn.run() for turn in turns(stream, 1)]
    for turn in turns(stream, 1):
        here().drop(turn)
    run(pipeline, tmp_path, "alone", "--checkpoint-dir", f"{tmp_path}/other")
    assert digests_of(stream.parcel.plan(), last)[1] in capfd.readouterr().err


def test_partition_is_called_in_its_process_and_taken_over_without_an_answer(
    file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = stream_of(f"{file}:running", str(tmp_path), 1)
    _, second = turns(stream, 2)
    process = subprocess.Popen(
        [sys.executable, "-c", _SERVES, f"{file}:running", str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert process.stdout is not None
    at = ("127.0.0.1", int(process.stdout.readline()))
    found = Turn(stream, 0, second.stop, nobody(stream), at).run()
    assert (found["epoch"], found["events"]) == (1, ROWS // 2)
    process.send_signal(signal.SIGSTOP)  # its machine is well, and it says nothing any more
    monkeypatch.setattr(calls, "SILENCE_S", 0.2)
    found = Turn(stream, 0, second.stop, nobody(stream), at).run()
    assert (found["epoch"] > 1, found["events"]) == (True, 0)
    here().drop(second)
    process.kill()
    process.communicate()
    found = Turn(stream, 0, second.stop, nobody(stream), at).run()
    assert (found["epoch"] > 2, found["events"]) == (True, 0)
    here().drop(second)


_SERVES = """
import sys
from ripple.spark.streaming import calls
from tests.spark.test_streaming import stream_of, turns
stream = stream_of(sys.argv[1], sys.argv[2], 1)
next(turns(stream, 2)).run()
print(calls.served(stream.store, "127.0.0.1")[1], flush=True)
sys.stdin.read()
"""


def test_an_output_whose_partition_is_another_one_again_is_found(file: str, tmp_path: Path) -> None:
    stream = stream_of(f"{file}:running", str(tmp_path), 2)
    for turn in turns(stream, 1):
        turn.run()
        here().drop(turn)
    plan = stream.parcel.plan()
    shares = sources_at(dict(stream.sources), plan).shares
    check = Divided(shares, "out", f"log:{tmp_path}/out", 2)
    (packet,) = check.run()
    assert packet.about["differences"] == []
    topic, _ = open_topic(f"log:{tmp_path}/out")
    with PartitionReader(topic, 0) as reader:
        *_, last = reader.read()
        end = reader.range()[1]
        notes = reader.notes_at(end - 1)
    with PartitionWriter(topic, 1, LiveClock(), epoch=9) as writer:
        writer.append(last.records, notes=notes)
    (tmp_path / "out/1/output-0000000001.cut").unlink()
    (packet,) = check.run()
    assert [one["what"] for one in packet.about["differences"]] == [
        "trades/0 is read by 2 partitions",
        "trades/1 is read by no partition: its records are in no row",
    ]


def test_impossible_run_is_rejected_before_anything_changes(file: str, tmp_path: Path) -> None:
    folder = str(tmp_path)
    with pytest.raises(PlanError, match="several stages"):
        stream_of(f"{file}:total", folder, 2)
    with pytest.raises(InputError, match="OnCount"):
        stream_of(f"{file}:counted", folder, 1)
    with pytest.raises(InputError, match="give a divisor"):
        stream_of(f"{file}:running", folder, 3)
    with pytest.raises(OutputError, match="sealed"):
        stream_of(f"{file}:running", folder, 1, sinks={"out": f"{folder}/out.csv"})
    with pytest.raises(InputError, match="nowhere"):
        stream_of(f"{file}:running", folder, 1, source=f"log:{folder}/nowhere")
    assert not (tmp_path / "state").exists()


def test_a_log_that_has_become_shorter_ends_the_query(file: str, tmp_path: Path) -> None:
    stream = stream_of(f"{file}:running", str(tmp_path), 1)
    (turn,) = turns(stream, 1)
    longer = Turn(stream, 0, {name: at + 5 for name, at in turn.stop.items()}, nobody(stream))
    with pytest.raises(InputError, match="was replaced or truncated"):
        longer.run()


def test_a_log_without_its_beginning_is_read_from_where_it_is_and_not_where_state_needs_more(
    file: str, tmp_path: Path
) -> None:
    topic, _ = open_topic(f"log:{tmp_path}/trades")
    settings = LogSettings(segment_bytes_max=1 << 12, retention_bytes_max=1 << 12, sync_appends=0)
    small = Topic.create(LiveDisk(tmp_path), "cut", topic.schema, time_field="t", settings=settings)
    plan = load_plan(f"{file}:running")
    rows = pa.RecordBatch.from_pylist(events(ROWS), pa.schema(arrow_fields(plan.source.fields)))
    with PartitionWriter(small, 0, LiveClock()) as writer:
        for at in range(0, ROWS, 50):
            writer.append(rows.slice(at, 50))
        writer.retain()
        assert writer.first_offset
    stream = stream_of(f"{file}:running", str(tmp_path), 1, source=f"log:{tmp_path}/cut")
    (turn,) = turns(stream, 1)
    first = small_first(small)
    assert turn.run()["events"] == ROWS - first
    here().drop(turn)
    with PartitionWriter(small, 0, LiveClock()) as writer:
        for _ in range(4):
            writer.append(rows)
        writer.retain()
    assert small_first(small) > ROWS
    (turn,) = turns(stream, 1)
    with pytest.raises(InputError, match=r"was removed|begins at"):
        turn.run()


def small_first(topic: Topic) -> int:
    with PartitionReader(topic, 0) as reader:
        return reader.range()[0]

"""Answers outlive the processes that asked: none is asked for again, on a cluster or in a run."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import ripple as rp
from ripple.engine.operators.answer_names import OFFSET, REASON
from ripple.model.schema.columns import records_of
from ripple.storage.log import PartitionWriter, Topic
from ripple.storage.log.errors import TopicError
from ripple.storage.store.opening import open_store
from ripple.task.asks.answer_log import AnswerLog
from ripple.world.live import LiveClock
from ripple.world.live_disk import LiveDisk
from tests.cli.processes import RIPPLE, ROOT
from tests.patience import PATIENCE_S, until
from tests.services.pipeline_asks import Trade, again, pipeline
from tests.storage.log.trades import read_all

pytestmark = pytest.mark.services

PIPELINE = Path(__file__).with_name("pipeline_asks.py")
COUNT = 1200


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    (tmp_path / "calls").touch()
    topic = Topic.create(LiveDisk(tmp_path), "trades", rp.schema_of(Trade), partitions=1)
    rows = [{"symbol": f"S{at % 7}", "size": at, "timestamp_ns": at} for at in range(1, COUNT + 1)]
    with PartitionWriter(topic, 0, LiveClock()) as writer:
        writer.append(records_of(rows, pipeline.plan().source.fields))
    return tmp_path


def calls(place: Path) -> list[tuple[int, int]]:
    """Return the calls so far: the size of the trade, and the answer."""
    lines = (place / "calls").read_text().splitlines()
    return [(int(size), int(given)) for size, given in map(str.split, lines)]


def recorded(store: Path) -> dict[int, int | None]:
    """Return the recorded answers by the size of the trade; each has one."""

    async def read() -> list[dict[str, Any]]:
        async with open_store(str(store)) as opened:
            log, at, rows = AnswerLog(opened, "graded"), 0, []
            await log.read()
            while at < log.end:
                await log.load(at)
                part = log.after(at)
                assert part is not None
                rows += part.rows.to_pylist()
                at = part.end
            return rows

    rows = asyncio.run(read())
    assert max(Counter(row[OFFSET] for row in rows).values()) == 1
    assert all((row[REASON] is None) == (row["grade"] is not None) for row in rows)
    return {row[OFFSET] + 1: row["grade"] for row in rows}


def shown(place: Path, output: str) -> dict[int, int]:
    try:
        return {row["size"]: row["grade"] for row in read_all(Topic.open(LiveDisk(place), output))}
    except (OSError, TopicError):
        return {}


def sinks(place: Path, output: str) -> dict[str, str]:
    return {name: f"log:{place}/{name}" for name in (output, f"{output}-sums")}


def check(place: Path, store: Path, before: list[tuple[dict[int, int | None], int]]) -> None:
    """Hold what is shown to the log of answers, and the calls; before: log and calls at kills."""
    answers = recorded(store)
    assert answers.keys() == set(range(1, COUNT + 1))
    assert shown(place, "graded") == {
        size: grade for size, grade in answers.items() if grade is not None
    }
    made = calls(place)
    for known, count in before:
        assert known.items() <= answers.items()
        assert not known.keys() & {size for size, _ in made[count:]}
    # A replay by one process, for other outputs: the same rows, and no call.
    report = rp.run(
        again,
        source=f"log:{place}/trades",
        sink=sinks(place, "again"),
        checkpoint_dir=str(store),
    )
    assert report.cut is not None
    assert report.cut["ripple.answers/0"] == COUNT
    assert shown(place, "again") == shown(place, "graded")
    sums = [read_all(Topic.open(LiveDisk(place), name)) for name in ("graded-sums", "again-sums")]
    of, of_again = ({row["symbol"]: row["of"] for row in one} for one in sums)
    assert of == of_again
    assert len(of) == 7
    assert calls(place) == made


def test_answers_of_killed_owners_count_on_a_cluster(place: Path) -> None:
    said, folder = place / "said", place / "cluster"
    given = [f"{name}={uri}" for name, uri in sinks(place, "graded").items()]
    command = [*RIPPLE, "cluster", "up", PIPELINE, "--source", f"log:{place}/trades"]
    command += ["--sink", given[0], "--sink", given[1], "--dir", folder, "--free-ports"]
    with said.open("wb") as err:
        up = subprocess.Popen(
            [*map(str, [*command, "--workers", "2", "--partitions", "1"])], cwd=ROOT, stderr=err
        )
    before = []
    try:
        for worker in (1, 2):  # one of them owns the partition
            count = len(shown(place, "graded"))
            until(lambda count=count: len(shown(place, "graded")) > count, said.read_text)
            number = re.findall(rf"worker-{worker} +\| process (\d+)", said.read_text())[-1]
            os.kill(int(number), signal.SIGKILL)
            before.append(recorded(folder / "store"))
        until(lambda: len(recorded(folder / "store")) == COUNT, said.read_text)
        wanted = sum(one is not None for one in recorded(folder / "store").values())
        until(lambda: len(shown(place, "graded")) == wanted, said.read_text)
        up.send_signal(signal.SIGTERM)
        assert up.wait(PATIENCE_S) == 0, said.read_text()
    finally:
        up.kill()
    answers = recorded(folder / "store")
    # Of calls nothing is said: the engine of a killed worker makes some until it notices.
    assert all(known.items() <= answers.items() for known in before)
    check(place, folder / "store", [])


def test_answers_of_killed_runs_count(place: Path) -> None:
    store = place / "state"
    command = [*RIPPLE, "run", PIPELINE, "--source", f"log:{place}/trades"]
    for name, uri in sinks(place, "graded").items():
        command += ["--sink", f"{name}={uri}"]
    command += ["--checkpoint-dir", store, "--commit-interval", "20ms"]
    before = []
    for _ in range(2):
        count = len(shown(place, "graded"))
        with (place / "said").open("wb") as err:
            running = subprocess.Popen([*map(str, command)], cwd=ROOT, stderr=err)
        until(lambda count=count: len(shown(place, "graded")) > count)
        running.kill()
        running.wait(PATIENCE_S)
        before.append((recorded(store), len(calls(place))))
    subprocess.run([*map(str, command)], cwd=ROOT, check=True)
    assert len(calls(place)) < 2 * COUNT
    check(place, store, before)

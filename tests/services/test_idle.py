"""Windows over a silent partition end, with markers in a folder or S3, and kills between."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import threading
import time
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import ripple as rp
from ripple.world.broker import Record, TopicPartition
from tests.cli.processes import RIPPLE, ROOT, ripple
from tests.csv_rows import lines_of
from tests.patience import PATIENCE_S, until
from tests.services.kafka import Broker
from tests.services.kafka_reader import read
from tests.services.kafka_topics import Topics
from tests.services.missing import MissingError, skip
from tests.services.pipeline_idle import both
from tests.services.s3 import ObjectServer

pytestmark = pytest.mark.services

PIPELINE = Path(__file__).with_name("pipeline_idle.py")
BUSY = TopicPartition("trades", 0)


async def append(bootstrap: str, count: int, *, is_first: bool = False) -> int:
    """Write trades of the last two seconds to one of two partitions; return the newest time."""
    began_ns = time.time_ns() - 2_000_000_000
    rows = [
        {"symbol": f"S{at % 7}", "size": at, "timestamp_ns": began_ns + at * 2_000_000_000 // count}
        for at in range(count)
    ]
    async with Topics(bootstrap) as topics:
        if is_first:
            await topics.create("trades", 2)
        await topics.append(BUSY, [Record(None, json.dumps(row).encode()) for row in rows])
    return int(rows[-1]["timestamp_ns"])


async def shown(bootstrap: str) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    """Return the table in the topic, by key and window."""
    table: dict[tuple[Any, ...], tuple[Any, ...]] = {}
    for records in (await read(bootstrap, "sizes")).values():
        for record in records:
            row = json.loads(record.value or b"{}")
            assert row
            table[row["symbol"], row["window_start_ns"]] = (row["size"], row["trades"])
    return table


def has_more(bootstrap: str, before: int) -> bool:
    return len(asyncio.run(shown(bootstrap))) > before


def test_windows_over_a_silent_partition_end_despite_kills(tmp_path: Path) -> None:
    try:
        broker = Broker(tmp_path / "kafka")
    except MissingError as error:
        skip(error)
    with broker:
        bootstrap, state = broker.bootstrap, tmp_path / "state"
        source, sink = f"kafka:{bootstrap}/trades", f"kafka:{bootstrap}/sizes"
        asyncio.run(append(bootstrap, 500, is_first=True))
        command = [*RIPPLE, "run", PIPELINE, "--source", source, "--sink", sink, "--follow"]
        more = ["--checkpoint-dir", state, "--commit-interval", "50ms"]
        for each in range(3):
            before = len(asyncio.run(shown(bootstrap))) if each else 0
            if each:
                asyncio.run(append(bootstrap, 500))
            with (tmp_path / f"{each}.err").open("wb") as err:
                running = subprocess.Popen([*map(str, [*command, *more])], cwd=ROOT, stderr=err)
            until(partial(has_more, bootstrap, before))
            running.send_signal(signal.SIGTERM if each == 2 else signal.SIGKILL)
            running.wait(PATIENCE_S)
        assert "is silent, and holds nothing back" in (tmp_path / "2.err").read_text()
        # Another output is computed from the first record, with the markers and no clock.
        report = rp.run(
            both,
            source=source,
            sink={"sizes-out": sink, "again": str(tmp_path / "again.csv")},
            checkpoint_dir=str(state),
        )
        table = asyncio.run(shown(bootstrap))
        again = {}
        for line in lines_of(tmp_path / "again.csv"):
            symbol, start, _, size, trades = line.split(",")
            again[symbol, int(start)] = (int(size), int(trades))
        assert again == table
        assert report.restored is not None
        assert report.restored.checkpoint is None
        assert report.restored.events == report.consumed == 1500
        assert report.cut is not None
        assert report.cut["ripple.markers/0"] > 0


def test_owners_on_a_cluster_go_on_by_the_markers_of_killed_ones(
    tmp_path: Path, quick_jvms: None
) -> None:
    """From Kafka to Kafka; and a replay on Spark makes the same rows of records and markers."""
    try:
        broker = Broker(tmp_path / "kafka")
    except MissingError as error:
        skip(error)
    said, folder = tmp_path / "said", tmp_path / "cluster"
    with broker:
        bootstrap = broker.bootstrap
        source, sink = f"kafka:{bootstrap}/trades", f"kafka:{bootstrap}/sizes"
        newest_ns = asyncio.run(append(bootstrap, 500, is_first=True))
        command = [*RIPPLE, "cluster", "up", PIPELINE, "--source", source, "--sink", sink]
        more = ["--dir", folder, "--workers", "2", "--free-ports"]
        with said.open("wb") as err:
            up = subprocess.Popen([*map(str, [*command, *more])], cwd=ROOT, stderr=err)

        def has_ended() -> bool:
            """Return whether the window of the newest trade is shown, which only a marker ends."""
            starts = [start for _, start in asyncio.run(shown(bootstrap))]
            return max(starts, default=0) + 100_000_000 > newest_ns

        try:
            until(has_ended, said.read_text)
            for worker in (1, 2):  # one of them owns the partition
                newest_ns = asyncio.run(append(bootstrap, 500))
                number = re.findall(rf"worker-{worker} +\| process (\d+)", said.read_text())[-1]
                os.kill(int(number), signal.SIGKILL)
                until(has_ended, said.read_text)
            up.send_signal(signal.SIGTERM)
            assert up.wait(PATIENCE_S) == 0, said.read_text()
        finally:
            up.kill()
        replay = ["spark", "replay", PIPELINE, "--source", source, "--markers", folder / "store"]
        ended = ripple(*replay, "--sink", f"csv:{tmp_path / 'again'}", "--open")
        assert ended.code == 0, ended.err
        table = asyncio.run(shown(bootstrap))
    again = {}
    for part in (tmp_path / "again").glob("*.csv"):
        for line in part.read_text().splitlines():
            symbol, start, _, size, trades = line.split(",")
            again[symbol, int(start)] = (int(size), int(trades))
    assert again == table


def test_markers_in_s3_wait_for_the_store(tmp_path: Path, s3_server: ObjectServer) -> None:
    out, said = tmp_path / "out.csv", tmp_path / "said"
    topic = f"log:{tmp_path}/trades"
    ripple("log", "create", tmp_path / "trades", "--schema", PIPELINE, "--partitions", 2)

    def start() -> subprocess.Popen[bytes]:
        command = [*RIPPLE, "run", PIPELINE, "--source", topic, "--sink", out, "--follow"]
        more = ["--checkpoint-dir", "s3://bucket/prefix", "--commit-interval", "50ms"]
        with said.open("ab") as err:
            return subprocess.Popen([*map(str, [*command, *more])], cwd=ROOT, stderr=err)

    def shown() -> int:
        return len(out.read_text().splitlines()) if out.exists() else 0

    def more(apart_ns: int = 2_000_000) -> None:
        """Append trades, which go to one partition of two, and wait for their windows."""
        before = shown()
        began_ns = time.time_ns() - 500 * apart_ns
        lines = [f"S{at % 7},{at},{began_ns + at * apart_ns}" for at in range(500)]
        ripple("log", "append", tmp_path / "trades", "-", given="\n".join(lines) + "\n")
        until(lambda: shown() > before, said.read_text)

    def is_committed(markers: int = 0) -> bool:
        """Return whether a commit has all rows, and as many markers."""
        cut = out.with_name("out.csv.cut")
        if not cut.exists():
            return False
        record = json.loads(cut.read_text().splitlines()[0])
        has_rows = record["end"] == out.stat().st_size
        return has_rows and record["reached"]["cut"]["ripple.markers/0"] >= markers

    running = start()
    more()
    # After a death within a batch, the next task would note each batch in the store.
    until(is_committed, said.read_text)
    running.kill()
    running.wait(PATIENCE_S)

    running = start()
    more()
    until(partial(is_committed, 2), said.read_text)  # else a commit is first to wait for the store
    s3_server.kill()
    appending = threading.Thread(target=more, args=[0])  # one window, which a marker ends
    appending.start()
    until(lambda: "markers of idle inputs wait for the store" in said.read_text())
    s3_server.start()
    appending.join(PATIENCE_S)
    running.send_signal(signal.SIGTERM)
    assert running.wait(PATIENCE_S) == 0, said.read_text()
    report = rp.run(
        both,
        source=topic,
        sink={"sizes-out": str(out), "again": str(tmp_path / "again.csv")},
        checkpoint_dir="s3://bucket/prefix",
    )
    assert report.consumed == 1500
    tables = [sorted(path.read_text().splitlines()) for path in (out, tmp_path / "again.csv")]
    assert tables[0] == tables[1]

"""Events in topics, streams and tables of real servers: each once, despite kills."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import nats
import pyarrow.dataset
import pytest
from deltalake import DeltaTable

import ripple as rp
from ripple.storage.log import PartitionReader, Topic
from ripple.world.live_disk import LiveDisk
from tests.cli.processes import RIPPLE, ROOT, ripple
from tests.cluster.settled import settled
from tests.patience import PATIENCE_S, until
from tests.services.kafka import Broker
from tests.services.kafka_reader import read
from tests.services.kafka_topics import Topics
from tests.services.missing import MissingError, skip
from tests.services.nats_server import Nats
from tests.services.pipeline_events import pipeline
from tests.services.postgres import Postgres

pytestmark = pytest.mark.services

PIPELINE = Path(__file__).with_name("pipeline_events.py")
TRADES, KILLS = 20_000, 5
Row = tuple[Any, ...]
FIELDS = ("symbol", "price", "size", "timestamp_ns", "venue")


def row_of(values: Mapping[str, Any]) -> Row:
    return tuple(values[name] for name in FIELDS)


def make_log(folder: Path, trades: int) -> list[Row]:
    """Make a log with two partitions; return its events, partition by partition."""
    divided = ("--partitions", "2", "--key", "symbol")
    ripple("log", "create", "--schema", "trade", *divided, folder / "trades")
    return append(folder, trades)


def append(folder: Path, trades: int) -> list[Row]:
    """Append to both partitions; return all of their rows."""
    ripple("log", "append", folder / "trades", f"synthetic:{trades}")
    topic, rows = Topic.open(LiveDisk(folder), "trades"), []
    for number in range(2):
        with PartitionReader(topic, number) as reader:
            for entry in reader.read():
                rows += map(row_of, entry.records.to_pylist())  # type: ignore[union-attr]  # no markers
    return rows


def by_symbol(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Rows in their order: those of a symbol are in one partition."""
    found = defaultdict(list)
    for row in rows:
        found[row[0]].append(row)
    return dict(found)


async def read_stream(address: str, stream: str) -> list[Row]:
    client = await nats.connect(f"nats://{address}", connect_timeout=PATIENCE_S)
    try:
        js = client.jetstream(timeout=PATIENCE_S)
        last = (await js.stream_info(stream)).state.last_seq
        reading = await js.subscribe(stream, ordered_consumer=True)
        data = [(await reading.next_msg(PATIENCE_S)).data for _ in range(last)]
    finally:
        await client.close()
    return [row_of(json.loads(each)) for each in data if each]


async def test_killed_runs_write_each_event_once(tmp_path: Path) -> None:
    """Servers are killed as well, between and in the middle of cuts."""
    try:
        stream, table = Nats(tmp_path / "nats"), Postgres(tmp_path / "postgres")
    except MissingError as error:
        skip(error)
    events = make_log(tmp_path, TRADES)
    chance = random.Random(3)
    with stream, table:
        environment = os.environ | table.environment | {"NATS_SERVER": stream.address}
        command = [
            *(*RIPPLE, "run", str(PIPELINE), "--source", f"log:{tmp_path}/trades"),
            *("--sink", "large=nats:large", "--sink", "small=postgres:small"),
            *("--sink", f"all=delta:{tmp_path}/all", "--sink", f"counts={tmp_path}/counts.csv"),
            *("--checkpoint-dir", str(tmp_path / "state"), "--commit-interval", "50ms"),
            *("--checkpoint-interval", "200ms", "--batch", "1000"),
        ]

        def start() -> subprocess.Popen[str]:
            return subprocess.Popen(
                command, cwd=ROOT, env=environment, stderr=subprocess.PIPE, text=True
            )

        for kill in range(KILLS):
            run = start()
            time.sleep(chance.uniform(1.0, 3.0))
            run.send_signal(signal.SIGKILL)
            run.communicate(timeout=PATIENCE_S)
            if kill in (2, 4):
                server = (stream, table)[kill // 4]
                server.kill()
                server.start()
        ended = start()
        said = ended.communicate(timeout=PATIENCE_S)[1]
        assert ended.returncode == 0, said
        with table.connect() as connection:
            small = connection.execute(f"SELECT {', '.join(FIELDS)} FROM small").fetchall()
        large = await read_stream(stream.address, "large")
    data = DeltaTable(str(tmp_path / "all")).to_pyarrow_dataset().to_table()
    assert large
    assert small
    assert by_symbol(large) == by_symbol(row for row in events if row[2] > 300)
    assert sorted(small) == sorted(row for row in events if row[2] <= 300)
    assert sorted(map(row_of, data.to_pylist())) == sorted(events)
    assert len(DeltaTable(str(tmp_path / "all")).history()) > 2, "it was written in one go"


def test_a_plain_run_writes_tables_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        table = Postgres(tmp_path / "postgres")
    except MissingError as error:
        skip(error)
    events = make_log(tmp_path, 3000)
    sinks = {
        "large": "postgres:large",
        "small": str(tmp_path / "small.parquet"),
        "all": f"delta:{tmp_path}/all",
        "counts": str(tmp_path / "counts.csv"),
    }
    with table:
        for name, value in table.environment.items():
            monkeypatch.setenv(name, value)
        for _ in range(2):  # the second one replaces the first
            rp.run(pipeline, source=f"log:{tmp_path}/trades", sink=sinks)
            with table.connect() as connection:
                large = connection.execute(f"SELECT {', '.join(FIELDS)} FROM large").fetchall()
            assert sorted(large) == sorted(row for row in events if row[2] > 300)
            small = pyarrow.dataset.dataset(tmp_path / "small.parquet").to_table()
            assert sorted(map(row_of, small.to_pylist())) == sorted(
                row for row in events if row[2] <= 300
            )
            found = DeltaTable(str(tmp_path / "all")).to_pyarrow_dataset().to_table()
            assert sorted(map(row_of, found.to_pylist())) == sorted(events)


async def test_a_compacted_topic_takes_no_event_without_a_key(
    broker: Broker, topic: str, tmp_path: Path
) -> None:
    make_log(tmp_path, 100)

    async with Topics(broker.bootstrap) as topics:
        await topics.create(topic, 1, **{"cleanup.policy": "compact"})
    refused = f"topic {topic} is compacted and takes no record without a key: say .sink(..., key="
    for output, problem in (("small", refused), ("large", "")):
        command = [
            *(*RIPPLE, "run", str(PIPELINE), "--source", f"log:{tmp_path}/trades"),
            *("--sink", f"{output}=kafka:{broker.bootstrap}/{topic}"),
            *("--sink", f"counts={tmp_path}/{output}.csv"),
        ]
        ended = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        assert problem in ended.stderr
        assert (ended.returncode == 0) == (not problem), ended.stderr


async def test_a_cluster_of_which_a_worker_is_killed_writes_each_event_once(
    broker: Broker, topic: str, tmp_path: Path
) -> None:
    """In two topics by one transaction a partition, and all of them in one table."""
    try:
        table = Postgres(tmp_path / "postgres")
    except MissingError as error:
        skip(error)
    make_log(tmp_path, TRADES)
    said = tmp_path / "said"
    async with Topics(broker.bootstrap) as topics:
        await topics.create(f"{topic}-large", 3)
    # Its name is that of transactions and topics of cuts.
    named = tmp_path / "pipeline.py"
    named.write_text(PIPELINE.read_text().replace('"fills"', f'"{topic[-60:]}"'))

    def start(*more: str) -> subprocess.Popen[str]:
        command = [
            *(*RIPPLE, "cluster", "up", str(named), "--source", f"log:{tmp_path}/trades"),
            *("--sink", f"large=kafka:{broker.bootstrap}/{topic}-large"),
            *("--sink", f"small=kafka:{broker.bootstrap}/{topic}-small"),
            *("--sink", "all=postgres:everything", "--sink", f"counts=log:{tmp_path}/counts"),
            *("--dir", str(tmp_path / "cluster"), "--workers", "2", "--free-ports", *more),
        ]
        environment = os.environ | table.environment | {"PYTHONPATH": str(ROOT)}
        with said.open("a") as log:
            return subprocess.Popen(command, cwd=ROOT, env=environment, stderr=log, text=True)

    with table:
        up = start()
        try:
            until(lambda: "shows them\n" in said.read_text(), said.read_text)
            (coordinator,) = re.findall(r"--coordinator (\S+)", said.read_text())
            await settled(coordinator, workers=2)
            subprocess.run(["pkill", "-9", "-P", str(up.pid), "-f", "worker-1"], check=True)
            events = append(tmp_path, TRADES)
            up.send_signal(signal.SIGTERM)
            assert up.wait(PATIENCE_S) == 0, said.read_text()
            up = start("--until-end")
            assert up.wait(PATIENCE_S) == 0, said.read_text()
        finally:
            up.kill()
        with table.connect() as connection:
            found = connection.execute(f"SELECT {', '.join(FIELDS)} FROM everything").fetchall()

    shown = [await read(broker.bootstrap, f"{topic}-{name}") for name in ("large", "small")]
    large, small = [
        [row_of(json.loads(one.value or b"")) for part in parts.values() for one in part]
        for parts in shown
    ]
    assert sorted(found) == sorted(events)
    assert by_symbol(large) == by_symbol(row for row in events if row[2] > 300)
    assert by_symbol(small) == by_symbol(row for row in events if row[2] <= 300)

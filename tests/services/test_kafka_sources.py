"""A pipeline of two sources over topics of a real broker, on a cluster that is killed."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from ripple.core.hashing import partition_of
from ripple.world.broker import Record, TopicPartition
from tests.cli.processes import RIPPLE, ROOT
from tests.cluster.cluster import ripple, table
from tests.cluster.market import COUNTS, OUTPUTS, PIPELINE, rows_of
from tests.cluster.settled import settled
from tests.patience import PATIENCE_S, until
from tests.services.kafka import Broker
from tests.services.kafka_topics import Topics

pytestmark = pytest.mark.services

ROWS = 3000


async def append(broker: Broker, topic: str, source: str, step: int) -> None:
    """Write records of a source to the partitions of their symbols, as JSON."""
    places: dict[int, list[Record]] = {number: [] for number in range(COUNTS[source])}
    for row in rows_of(source, step, ROWS):
        key = row["symbol"].encode()
        places[partition_of(key, COUNTS[source])].append(Record(key, json.dumps(row).encode()))
    async with Topics(broker.bootstrap) as topics:
        if not step:
            await topics.create(f"{topic}-{source}", COUNTS[source])
        for number, records in places.items():
            await topics.append(TopicPartition(f"{topic}-{source}", number), records)


def test_tables_are_those_of_one_process_although_workers_were_killed(
    broker: Broker, topic: str, tmp_path: Path
) -> None:
    for source in COUNTS:
        asyncio.run(append(broker, topic, source, 0))
    places = [
        flag
        for source in COUNTS
        for flag in (
            "--source",
            f"{source}=kafka:{broker.bootstrap}/{topic}-{source}?format=json&key=symbol",
        )
    ]
    said = tmp_path / "said"

    def sinks(folder: Path) -> list[str]:
        return [flag for one in OUTPUTS for flag in ("--sink", f"{one}=log:{folder / one}")]

    def start(*more: str) -> subprocess.Popen[str]:
        command = [
            *(*RIPPLE, "cluster", "up", str(PIPELINE), *places, *sinks(tmp_path / "made")),
            *("--dir", str(tmp_path / "cluster"), "--workers", "2", "--free-ports", *more),
        ]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        with said.open("a") as log:
            return subprocess.Popen(command, cwd=ROOT, env=environment, stderr=log, text=True)

    up = start()
    try:
        until(lambda: "shows them\n" in said.read_text(), said.read_text)
        (coordinator,) = re.findall(r"--coordinator (\S+)", said.read_text())
        asyncio.run(settled(coordinator, workers=2))
        asyncio.run(append(broker, topic, "quotes", 1))  # trades lag
        number = re.findall(r"worker-1 +\| process (\d+)", said.read_text())[-1]
        os.kill(int(number), signal.SIGKILL)
        asyncio.run(append(broker, topic, "trades", 1))
        up.send_signal(signal.SIGTERM)
        assert up.wait(PATIENCE_S) == 0, said.read_text()
        up = start("--until-end")
        assert up.wait(PATIENCE_S) == 0, said.read_text()
    finally:
        up.kill()
    assert f"{4 * ROWS:,} of {4 * ROWS:,} records are in the outputs" in said.read_text()
    alone = ["run", PIPELINE, *places, *sinks(tmp_path / "whole")]
    ripple(*alone, "--checkpoint-dir", tmp_path / "state")
    for output in OUTPUTS:
        assert table(tmp_path / "made" / output) == table(tmp_path / "whole" / output)

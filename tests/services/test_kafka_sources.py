"""A pipeline of two sources over topics of a real broker, on a cluster that is killed."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
from collections.abc import Callable, Sequence
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

REPARTITIONED = PIPELINE.with_name("pipeline_divided.py")
ROWS = 3000


async def append(broker: Broker, topic: str, source: str, step: int, key: str = "symbol") -> None:
    """Write records of a source to the partitions of their keys, as JSON."""
    places: dict[int, list[Record]] = {number: [] for number in range(COUNTS[source])}
    for row in rows_of(source, step, ROWS):
        value = str(row[key]).encode()
        record = Record(value, json.dumps(row).encode())
        places[partition_of(value, COUNTS[source])].append(record)
    async with Topics(broker.bootstrap) as topics:
        if not step:
            await topics.create(f"{topic}-{source}", COUNTS[source])
        for number, records in places.items():
            await topics.append(TopicPartition(f"{topic}-{source}", number), records)


def places_of(broker: Broker, topic: str, *moved: str) -> list[str]:
    """Return the sources' topics. moved: sources without a key in their topic."""
    return [
        flag
        for source in COUNTS
        for flag in (
            "--source",
            f"{source}=kafka:{broker.bootstrap}/{topic}-{source}?format=json"
            + ("" if source in moved else "&key=symbol"),
        )
    ]


def sinks_in(folder: Path, outputs: Sequence[str]) -> list[str]:
    return [flag for one in outputs for flag in ("--sink", f"{one}=log:{folder / one}")]


def compare(
    pipeline: Path,
    places: list[str],
    outputs: Sequence[str],
    folder: Path,
    more: Callable[[str], None],
) -> str:
    """Run a cluster, kill a worker while more comes, and compare its outputs; return its log.

    more: appends the rest of a source.
    """
    said = folder / "said"

    def start(*flags: str) -> subprocess.Popen[str]:
        command = [
            *(*RIPPLE, "cluster", "up", str(pipeline), *places),
            *(*sinks_in(folder / "made", outputs), "--dir", str(folder / "cluster")),
            *("--workers", "2", "--free-ports", *flags),
        ]
        environment = os.environ | {"PYTHONPATH": str(ROOT)}
        with said.open("a") as log:
            return subprocess.Popen(command, cwd=ROOT, env=environment, stderr=log, text=True)

    up = start()
    try:
        until(lambda: "shows them\n" in said.read_text(), said.read_text)
        (coordinator,) = re.findall(r"--coordinator (\S+)", said.read_text())
        asyncio.run(settled(coordinator, workers=2))
        more("quotes")  # trades lag
        number = re.findall(r"worker-1 +\| process (\d+)", said.read_text())[-1]
        os.kill(int(number), signal.SIGKILL)
        more("trades")
        up.send_signal(signal.SIGTERM)
        assert up.wait(PATIENCE_S) == 0, said.read_text()
        up = start("--until-end")
        assert up.wait(PATIENCE_S) == 0, said.read_text()
    finally:
        up.kill()
    alone = ["run", pipeline, *places, *sinks_in(folder / "whole", outputs)]
    ripple(*alone, "--checkpoint-dir", folder / "state")
    for output in outputs:
        assert table(folder / "made" / output) == table(folder / "whole" / output)
    return said.read_text()


def test_tables_are_those_of_one_process_although_workers_were_killed(
    broker: Broker, topic: str, tmp_path: Path
) -> None:
    for source in COUNTS:
        asyncio.run(append(broker, topic, source, 0))

    def more(source: str) -> None:
        asyncio.run(append(broker, topic, source, 1))

    said = compare(PIPELINE, places_of(broker, topic), OUTPUTS, tmp_path, more)
    assert f"{4 * ROWS:,} of {4 * ROWS:,} records are in the outputs" in said


def test_repartitioned_records_go_through_a_topic_of_the_source(
    broker: Broker, topic: str, tmp_path: Path
) -> None:
    keys = {"trades": "symbol", "quotes": "bid"}
    for source, key in keys.items():
        asyncio.run(append(broker, topic, source, 0, key))

    def more(source: str) -> None:
        asyncio.run(append(broker, topic, source, 1, keys[source]))

    pipeline = tmp_path / "pipeline.py"
    text = REPARTITIONED.read_text()
    pipeline.write_text(text.replace('rp.Pipeline("market")', f'rp.Pipeline("{topic}")'))
    said = compare(
        pipeline, places_of(broker, topic, "quotes"), ("out", "pairs-out", "shown"), tmp_path, more
    )
    assert "records of quotes are repartitioned by symbol" in said

    async def lanes() -> int:
        async with Topics(broker.bootstrap) as topics:
            lanes, cuts = await topics.described(
                f"{topic}.records.quotes", f"{topic}.records.quotes.cuts"
            )
            assert cuts == 2
            return lanes

    assert asyncio.run(lanes()) == COUNTS["quotes"] * 4

"""One pipeline goes from a run to Spark, to a cluster and back, with its state."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer

from ripple.model.pipeline.file import load_plan
from tests.patience import PATIENCE_S
from tests.services.kafka import Broker
from tests.services.kafka_topics import Topics
from tests.services.s3 import ObjectServer
from tests.services.test_spark_run import file
from tests.spark.logs import append, topic_of
from tests.spark.streams import events

pytestmark = [pytest.mark.services, pytest.mark.usefixtures("quick_jvms")]
__all__ = ["file"]
ROOT = Path(__file__).parents[2]


def asked(*words: str) -> tuple[str, str]:
    """Return what a command wrote and said; it must end well."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [sys.executable, "-m", "ripple.cli.main", *words]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
    return done.stdout, done.stdout + done.stderr


def found(pattern: str, text: str) -> str:
    seen = re.search(pattern, text)
    assert seen, text
    return seen.group(1)


def test_a_run_spark_a_cluster_and_a_run_are_one_run(file: str, tmp_path: Path) -> None:
    given = events(4000)
    place = topic_of(tmp_path, load_plan(file), given[:1000], partitions=1, key=["symbol"])
    moved(
        file,
        place,
        f"{tmp_path}/state",
        tmp_path,
        lambda at: append(place, file, given[at : at + 1000]),
    )


def test_they_are_with_kafka_as_the_source_and_a_store_in_s3(
    file: str, tmp_path: Path, broker: Broker, topic: str, s3_server: ObjectServer
) -> None:
    given = events(4000)

    async def produced(rows: list[dict[str, Any]]) -> None:
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
            for row in rows:
                line = ",".join(str(row[name]) for name in ("symbol", "price", "size", "t"))
                await producer.send(topic, line.encode(), row["symbol"].encode(), partition=0)

    async def begun() -> None:
        async with Topics(broker.bootstrap) as topics:
            await topics.create(topic, 1)
        await produced(given[:1000])

    asyncio.run(begun())
    place = f"kafka:{broker.bootstrap}/{topic}?format=csv&key=symbol"
    more = lambda at: asyncio.run(produced(given[at : at + 1000]))  # noqa: E731
    moved(file, place, "s3://bucket/state", tmp_path, more)


def moved(
    file: str, place: str, state: str, folder: Path, append_from: Callable[[int], None]
) -> None:
    """Move a state from a run to Spark, a cluster and a run again, with more records each time."""
    here = (file, "--source", place, "--sink", f"log:{folder}/out")
    run = ("run", *here, "--batch", "50", "--checkpoint-dir", state)
    store = ("--store", state, "--partitions", "1")
    up = ("cluster", "up", *here, *store, "--dir", f"{folder}/cluster", "--workers", "1")

    asked(*run)
    append_from(1000)
    said = asked("spark", "run", *here, *store, "--batch", "50", "--master", "local[1]")[1]
    assert "partition 0 resumed from 0000000001-" in said, said
    assert "Events processed:  1000\n" in said, said
    by_spark = found(r"Digest: +(\w{16})", said)
    append_from(2000)
    said = asked(*up, "--until-end", "--free-ports")[1]
    assert "at 2000; replayed 0 events from 2000 to 2000 in " in said, said
    assert f", digest {by_spark}" in said, said
    append_from(3000)
    said = asked(*run)[1]
    assert "at 3000; replayed 0 events" in said, said
    assert "Events processed:  1000, 4000 in all" in said, said

    sink = f"log:{folder}/alone"
    alone = asked(
        "run", file, "--source", place, "--sink", sink, "--checkpoint-dir", f"{folder}/other"
    )[1]
    assert found(r"Digest: +(\w{16})", said) == found(r"Digest: +(\w{16})", alone)
    one, other = (asked("log", "table", f"{folder}/{name}")[0] for name in ("out", "alone"))
    assert one == other
    assert one.count("\n") > 100

"""Connectors of real servers keep the contracts of tests/connectors/contract."""

from __future__ import annotations

import asyncio
import json
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ripple.connectors.registry import own
from ripple.testing import sink_suite, source_suite
from ripple.testing.connectors.rows import tick
from ripple.world.broker import Record, TopicPartition
from tests.services.kafka import Broker
from tests.services.kafka_topics import Topics
from tests.services.missing import MissingError, skip
from tests.services.postgres import Postgres

pytestmark = pytest.mark.services

RUNNING: dict[str, Any] = {}
"""The servers, for what is asked for places."""


@pytest.fixture(scope="module", autouse=True)
def servers(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    try:
        postgres = Postgres(tmp_path_factory.mktemp("contract") / "postgres")
    except MissingError as error:
        skip(error)
    with postgres, pytest.MonkeyPatch.context() as patched:
        for name, value in postgres.environment.items():
            patched.setenv(name, value)
        RUNNING.update(postgres=postgres, broker=broker)
        yield
    RUNNING.clear()


def unique(folder: Path) -> str:
    """A name that no other folder has."""
    return f"out_{zlib.crc32(str(folder).encode()):08x}"


def rows(table: str) -> list[dict[str, Any]]:
    """What a table shows, and nothing of one that is not there."""
    postgres: Postgres = RUNNING["postgres"]
    if postgres.rows(f"SELECT to_regclass('{table}')") == [(None,)]:
        return []
    found = postgres.rows(f"SELECT name, number, price FROM {table} ORDER BY name")
    return [dict(zip(("name", "number", "price"), row, strict=True)) for row in found]


def by(*commands: str) -> Callable[[Path], None]:
    """Do so to the table of a folder, named {0}."""

    def change(folder: Path) -> None:
        with RUNNING["postgres"].connect() as connection:
            for command in commands:
                connection.execute(command.format(unique(folder)))

    return change


CHANGES = {
    "dropped": by("DROP TABLE {0}"),
    "made anew": by(
        "ALTER TABLE {0} RENAME TO {0}_old", "CREATE TABLE {0} (LIKE {0}_old INCLUDING ALL)"
    ),
    "altered": by("ALTER TABLE {0} ALTER number TYPE integer"),
}

TestPostgres = sink_suite(own()["postgres"], unique, rows, changes=CHANGES)
TestPostgresWhole = sink_suite(own()["postgres"], unique, rows, plain=True)


def put(folder: Path, ticks: list[dict[str, Any]]) -> str:
    """Records of a topic of one partition, as JSON."""
    broker: Broker = RUNNING["broker"]
    topic = unique(folder)
    first_ms = time.time_ns() // 1_000_000  # by which Ripple tells one topic from another
    records = [Record(None, json.dumps(tick).encode(), first_ms + tick["number"]) for tick in ticks]

    async def send() -> None:
        async with Topics(broker.bootstrap) as topics:
            if not (folder / "made").exists():
                await topics.create(topic, 1)
                (folder / "made").touch()
            await topics.append(TopicPartition(topic, 0), records)

    asyncio.run(send())
    return f"{broker.bootstrap}/{topic}?format=json"


def remake(folder: Path) -> None:
    """A topic that was removed, and another one of its name, with more in it."""

    async def again() -> None:
        async with Topics(RUNNING["broker"].bootstrap) as topics:
            await topics.delete(unique(folder))

    asyncio.run(again())
    (folder / "made").unlink()
    put(folder, [tick(number) for number in range(300)])


@pytest.fixture(autouse=True)
def reads_little_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Less than the suite's long input, so that it is seen whether reading ahead has an end."""
    monkeypatch.setattr("ripple.connectors.kafka.inputs.BYTES_AHEAD", 2 << 20)


TestKafka = source_suite(own()["kafka"], put, changes={"made anew": remake})

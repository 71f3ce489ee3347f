"""Tables from topics of a real broker: records without a value, envelopes, compaction, restarts."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ripple.model.keys.partitioner import partition_numbers
from ripple.model.schema.columns import records_of
from ripple.model.schema.types import Field, Int
from ripple.world.broker import Record, TopicPartition
from tests.patience import PATIENCE_S
from tests.services.kafka import Broker
from tests.services.kafka_topics import Topics

pytestmark = pytest.mark.services

PIPELINE = """
import ripple as rp

@rp.record(version=1)
class Item:
    id: int
    group: str
    price: float = rp.field(gt=0)

@rp.record(version=1)
class Priced:
    id: int
    price: float
    at: int

def pipeline_of(name, **how):
    table = rp.Pipeline(name).table("items", Item, key="id", **how)
    return (
        table.sink("rows")
        .partition("by-group", key="group")
        .fold("by-groups", n=rp.count(), price=rp.sum("price"), most=rp.arg_max("price", "id"))
        .sink("groups")
    )

plain = pipeline_of("plain")
debezium = pipeline_of("cdc", format="debezium")
lenient = pipeline_of("cdc", format="debezium", truncate="letter")
versions = (
    rp.Pipeline("versions")
    .table("items", Priced, key="id", time="at")
    .versions("changes")
    .sink("rows")
)
"""
PARTITIONS = 3
Changes = list[tuple[int, dict[str, Any] | None]]


def long(number: int) -> bytes:
    return number.to_bytes(8, "big", signed=True)


def plain(key: int, row: dict[str, Any] | None) -> Record:
    return Record(long(key), None if row is None else json.dumps(row).encode())


def changes(first: int, count: int) -> Changes:
    """Return changes of thirty keys: new prices, other groups, deletions."""
    found: Changes = []
    for number in range(first, first + count):
        key = number * 7 % 30
        row = {"id": key, "group": f"g{number % 4}", "price": 0.1 + number % 11}
        found.append((key, None if number % 5 == 0 else row))
    return found


def rows_of(given: Changes) -> dict[int, dict[str, Any]]:
    return {key: row for key, row in dict(given).items() if row is not None}


def groups_of(rows: dict[int, dict[str, Any]]) -> dict[str, int]:
    groups = [row["group"] for row in rows.values()]
    return {group: groups.count(group) for group in groups}


def partition_of(key: int) -> int:
    number = partition_numbers(records_of([{"id": key}], [Field("id", Int())]), ["id"], PARTITIONS)
    return int(number[0])


def story(broker: Broker, told: Callable[[Topics], Awaitable[None]]) -> None:
    async def main() -> None:
        async with Topics(broker.bootstrap) as topics:
            await told(topics)

    asyncio.run(asyncio.wait_for(main(), PATIENCE_S))


async def added(topics: Topics, topic: str, given: Changes) -> None:
    for number in range(PARTITIONS):
        own = [plain(*change) for change in given if partition_of(change[0]) == number]
        await topics.append(TopicPartition(topic, number), own)


def ran(folder: Path, pipeline: str, *given: str, code: int = 0) -> str:
    (folder / "p.py").write_text(PIPELINE)
    command = [sys.executable, "-m", "ripple.cli.main", "run", f"p.py:{pipeline}", *given]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def shown(path: Path, key: str) -> dict[Any, dict[str, Any]]:
    """Return the rows that lines of changes lead to."""
    rows: dict[Any, dict[str, Any]] = {}
    for line in path.read_text().splitlines():
        row = json.loads(line)
        if row.pop("op") == "remove":
            del rows[row[key]]
        else:
            rows[row[key]] = row
    return rows


def test_a_topic_with_deletions_is_a_table_before_and_after_restarts(
    broker: Broker, topic: str, tmp_path: Path
) -> None:
    half, whole = changes(0, 400), changes(0, 900)

    async def begun(topics: Topics) -> None:
        await topics.create(topic, PARTITIONS)
        await added(topics, topic, half)

    story(broker, begun)
    source = ("--source", f"kafka:{broker.bootstrap}/{topic}?key=id")
    sinks = ("--sink", "rows=rows.jsonl", "--sink", "groups=groups.jsonl")
    durable = (*source, *sinks, "--checkpoint-dir", "state")
    ran(tmp_path, "plain", *durable)
    assert shown(tmp_path / "rows.jsonl", "id") == rows_of(half)
    story(broker, lambda topics: added(topics, topic, whole[400:]))
    ran(tmp_path, "plain", *durable)
    rows = rows_of(whole)
    assert shown(tmp_path / "rows.jsonl", "id") == rows
    groups = shown(tmp_path / "groups.jsonl", "group")
    assert {name: row["n"] for name, row in groups.items()} == groups_of(rows)
    other = ("--sink", "rows=o-rows.jsonl", "--sink", "groups=o-groups.jsonl")
    said = ran(tmp_path, "plain", *source, *other)
    assert "Events processed:  900\n" in said
    assert shown(tmp_path / "o-rows.jsonl", "id") == rows
    assert shown(tmp_path / "o-groups.jsonl", "group") == groups


def test_records_at_fault_are_dead_letters_with_their_reasons(
    broker: Broker, topic: str, tmp_path: Path
) -> None:
    good = plain(1, {"id": 1, "group": "a", "price": 2.0})
    wrong = [
        Record(b"xyz", None),
        plain(2, {"group": "a", "price": 1.0}),
        plain(3, {"id": 3, "price": 1.0}),
        plain(4, {"id": 4, "group": "a", "price": 0.0}),
        Record(long(5), b"{"),
    ]

    async def told(topics: Topics) -> None:
        await topics.create(topic, 1)
        await topics.append(TopicPartition(topic, 0), [good, *wrong])

    story(broker, told)
    place = f"kafka:{broker.bootstrap}/{topic}"
    letters, sink = ("--dead-letter", "letters.jsonl"), ("--sink", "rows=rows.jsonl")
    ran(tmp_path, "plain", "--source", place, *sink, *letters)
    assert [*shown(tmp_path / "rows.jsonl", "id")] == [1]
    said = [json.loads(line) for line in (tmp_path / "letters.jsonl").read_text().splitlines()]
    assert {letter["offset"]: letter["reason"] for letter in said} == {
        1: "the record key has no integer as id",
        2: "id is empty",
        3: "items: the field 'group' is null",
        4: "items: price is not positive",
        5: "not a JSON record",
    }
    said = ran(tmp_path, "plain", "--source", f"{place}?key_format=xml", *sink, code=1)
    assert "there is no key_format 'xml': there are bytes, json, avro" in said
    said = ran(tmp_path, "plain", "--source", f"{place}?key_format=json&key=id", *sink, code=1)
    assert "leave key= out, and records stay where they are" in said
    said = ran(tmp_path, "debezium", "--source", f"{place}?key=id", *sink, code=1)
    assert "leave key= out, and records stay where they are" in said
    said = ran(tmp_path, "debezium", "--source", f"{place}?format=csv", *sink, code=1)
    assert "envelopes of Debezium are read as JSON or Avro, not as csv" in said


def test_an_output_of_ripple_is_a_table_again(broker: Broker, topic: str, tmp_path: Path) -> None:
    given = changes(0, 300)

    async def told(topics: Topics) -> None:
        await topics.create(topic, PARTITIONS)
        await added(topics, topic, given)

    story(broker, told)
    source, copy = (f"kafka:{broker.bootstrap}/{name}" for name in (topic, f"{topic}-copy"))
    ran(tmp_path, "plain", "--source", source, "--sink", f"rows={copy}")
    ran(tmp_path, "plain", "--source", copy, "--sink", "rows=rows.jsonl")
    assert shown(tmp_path / "rows.jsonl", "id") == rows_of(given)


def envelope(op: str, after: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"before": None, "after": after, "source": {"lsn": 5}, "op": op, "ts_ms": 7}


@pytest.mark.parametrize("wrapped", [False, True])
def test_envelopes_of_debezium_are_a_table(
    broker: Broker, topic: str, tmp_path: Path, wrapped: bool
) -> None:
    def change(key: int, value: dict[str, Any] | None) -> Record:
        parts: list[Any] = [{"id": key}, value]
        if wrapped:
            parts = [part and {"schema": {}, "payload": part} for part in parts]
        key_said, said = (None if part is None else json.dumps(part).encode() for part in parts)
        return Record(key_said, said)

    def row(key: int, group: str) -> dict[str, Any]:
        return {"id": key, "group": group, "price": 1.5, "other": None}

    records = [
        change(1, envelope("r", row(1, "a"))),
        change(2, envelope("c", row(2, "a"))),
        change(1, envelope("u", row(1, "b"))),
        change(2, envelope("d")),
        change(2, None),
        change(3, envelope("d")),
        change(1, envelope("d")),  # another primary key
        change(9, envelope("c", row(9, "b"))),
        change(1, envelope("r", row(1, "c"))),  # a second snapshot
    ]

    async def told(topics: Topics) -> None:
        await topics.create(topic, 1)
        await topics.append(TopicPartition(topic, 0), records)

    story(broker, told)
    given = ("--source", f"kafka:{broker.bootstrap}/{topic}", "--sink", "rows=rows.jsonl")
    ran(tmp_path, "debezium", *given)
    rows = shown(tmp_path / "rows.jsonl", "id")
    assert {key: row["group"] for key, row in rows.items()} == {9: "b", 1: "c"}
    truncation = [Record(None, json.dumps(envelope("t")).encode())]
    story(broker, lambda topics: topics.append(TopicPartition(topic, 0), truncation))
    said = ran(tmp_path, "debezium", *given, code=1)
    assert f"{topic}/0, offset 9: the table was truncated" in said
    said = ran(tmp_path, "lenient", *given)
    assert "Events processed:  10\n" in said


def test_versions_of_a_topic_are_its_records_and_those_of_a_compacted_one_are_refused(
    broker: Broker, topic: str, tmp_path: Path
) -> None:
    records = [
        plain(1, {"id": 1, "price": 2.0, "at": 5}),
        plain(1, None),
        plain(2, {"id": 2, "price": 3.0, "at": 9}),
        plain(1, {"id": 1, "price": 4.0, "at": 7}),
    ]

    async def told(topics: Topics) -> None:
        await topics.create(topic, 1)
        await topics.append(TopicPartition(topic, 0), records)
        await topics.create(f"{topic}-compacted", 1, **{"cleanup.policy": "compact"})

    story(broker, told)
    place, sink = f"kafka:{broker.bootstrap}/{topic}", ("--sink", "rows=rows.jsonl")
    ran(tmp_path, "versions", "--source", place, *sink)
    lines = (tmp_path / "rows.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [
        {"id": 1, "price": 2.0, "at": 5, "deleted": False},
        {"id": 1, "price": None, "at": 5, "deleted": True},
        {"id": 2, "price": 3.0, "at": 9, "deleted": False},
        {"id": 1, "price": 4.0, "at": 7, "deleted": False},
    ]
    durable = (*sink, "--checkpoint-dir", "state")
    for how in (sink, durable):
        said = ran(tmp_path, "versions", "--source", f"{place}-compacted", *how, code=1)
        assert "as the versions of 'items': the topic is compacted, and compaction has" in said
        assert said.count("\n") == 1

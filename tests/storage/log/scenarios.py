"""A producer that will not be told twice: the program that crashes are tried on."""

from __future__ import annotations

from typing import Any

from ripple.storage.log import (
    LogSettings,
    PartitionReader,
    PartitionWriter,
    Stamp,
    Topic,
    TopicError,
)
from ripple.testing import SimWorld
from tests.storage.log.trades import SCHEMA, read_all, records_of, rows_of

APPENDS = 7
ROWS = 3
EXPECTED = rows_of(0, APPENDS * ROWS)


def synced_each_time(world: SimWorld, seed: int) -> None:
    produce(world, LogSettings(segment_bytes_max=2600, index_interval_bytes=1000))


def synced_in_groups(world: SimWorld, seed: int) -> None:
    produce(world, LogSettings(sync_appends=3, segment_bytes_max=2600))


def synced_by_the_producer(world: SimWorld, seed: int) -> None:
    produce(world, LogSettings(sync_appends=0))


def produce(world: SimWorld, settings: LogSettings) -> None:
    """Append what is not known to be durable, as a client does that got no answer.

    The witness keeps how many appends were promised to survive.
    """
    try:
        topic = Topic.create(world.disk, "ticks", SCHEMA, time_field="at_ns", settings=settings)
    except TopicError:
        topic = Topic.open(world.disk, "ticks")
    promised = world.witness.get("promised", 0)
    with PartitionWriter(topic, 0, world.clock, guards=world.guards) as writer:
        check(topic, promised)
        assert writer.durable_offset == writer.next_offset >= promised * ROWS
        with PartitionReader(topic, 0) as reader:
            reader.seek(promised * ROWS)
            for number in range(promised, APPENDS):
                rows = EXPECTED[number * ROWS : (number + 1) * ROWS]
                writer.append(records_of(rows), Stamp(1, 0, number))
                if not settings.sync_appends and number % 4 == 3:
                    # A producer that retries has at most REMEMBERED appends under way.
                    writer.sync()
                note_promised(world, writer.durable_offset)
            while (entry := reader.next()) is not None:
                first = entry.next_offset - len(entry.records)
                assert entry.records.to_pylist() == EXPECTED[first : entry.next_offset]
        writer.sync()
        note_promised(world, writer.durable_offset)
    assert read_all(topic) == EXPECTED


def note_promised(world: SimWorld, durable_offset: int) -> None:
    world.witness["promised"] = max(world.witness.get("promised", 0), durable_offset // ROWS)


def survived(world: SimWorld, seed: int) -> None:
    """What any process finds after a crash, before a writer has recovered it."""
    if world.disk.exists("ticks/topic"):
        check(Topic.open(world.disk, "ticks"), world.witness.get("promised", 0))


def check(topic: Topic, promised: int) -> None:
    found: list[Any] = read_all(topic)
    assert found == EXPECTED[: len(found)], "what is there was never written"
    assert len(found) >= promised * ROWS, "what was promised is gone"
    assert len(found) % ROWS == 0, "half an append is there"

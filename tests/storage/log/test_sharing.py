"""Partitions chosen for records, syncs shared by tasks, and logs read as sources."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ripple.connectors.log.source import LogSource
from ripple.connectors.record_shape import RecordShape
from ripple.core.errors import InputError
from ripple.core.hashing import partition_of
from ripple.model.batch import Batch, Marker
from ripple.model.schema.checks import Checks
from ripple.storage.log import (
    GroupCommit,
    LogSettings,
    OffsetOutOfRangeError,
    PartitionReader,
    PartitionWriter,
    Topic,
    TopicWriter,
)
from ripple.storage.log import writer as writer_module
from ripple.storage.log.router import Router
from ripple.testing import SimDisk, sim_world
from ripple.world import DiskLockedError
from tests.storage.log.trades import (
    SCHEMA,
    ManualClock,
    listed,
    read_all,
    records_of,
    rows_of,
    topic_of,
)


def test_keyed_records_go_where_kafka_sends_them() -> None:
    topic = Topic.create(SimDisk(), "ticks", SCHEMA, partitions=5, key=["symbol"])
    rows = rows_of(0, 60)
    with TopicWriter(topic, ManualClock()) as writer:
        for first in range(0, 60, 7):
            writer.append(records_of(rows[first : first + 7]))
    for partition in range(5):
        assert read_all(topic, partition=partition) == [
            row for row in rows if partition_of(row["symbol"].encode(), 5) == partition
        ]


def test_keyless_batches_stick_and_rotate() -> None:
    router = Router(3, sticky_rows=10)
    chosen = [router.route(records_of(rows_of(0, 4)))[0][0] for _ in range(12)]
    assert chosen == [0, 0, 0, 1, 1, 1, 2, 2, 2, 0, 0, 0]
    assert router.route(records_of([])) == []


def test_topic_writer_that_cannot_have_all_partitions_has_none() -> None:
    topic = Topic.create(SimDisk(), "ticks", SCHEMA, partitions=3)
    with (
        PartitionWriter(topic, 2, ManualClock(), holder="alice"),
        pytest.raises(DiskLockedError, match="alice"),
    ):
        TopicWriter(topic, ManualClock())
    with TopicWriter(topic, ManualClock()) as writer:
        writer.mark(7)
    assert [read_all(topic, partition=partition) for partition in range(3)] == [[7], [7], [7]]


def test_partitions_that_get_every_append_do_not_sync_in_the_same_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(writer_module, "APPENDS_PER_INDEX", 12)
    settings = LogSettings(sync_appends=0)
    topic = Topic.create(SimDisk(), "ticks", SCHEMA, partitions=3, settings=settings)
    with TopicWriter(topic, ManualClock()) as writer:
        grew: list[list[int]] = []
        for time_ns in range(24):
            before = [one.durable_offset for one in writer.writers]
            for one in writer.writers:
                one.append(records_of(rows_of(time_ns, 1)))
            after = [one.durable_offset for one in writer.writers]
            grew += [[at for at in range(3) if after[at] != before[at]]]
    assert grew == 2 * [*3 * [[]], [2], *3 * [[]], [1], *3 * [[]], [0]]


def test_one_sync_serves_all_tasks() -> None:
    world = sim_world()
    topic = topic_of(world.disk, sync_appends=0)

    async def append_all() -> None:
        with PartitionWriter(topic, 0, world.clock) as writer:
            group = GroupCommit(writer, world.clock)
            before = world.effects.names.count("sync")

            async def one(number: int) -> None:
                appended = await group.append(records_of(rows_of(number, 1)))
                assert writer.durable_offset >= appended.next_offset

            await asyncio.gather(*map(one, range(50)))
            assert world.effects.names.count("sync") - before == 1
            assert writer.durable_offset == 50

    world.loop.run_until_complete(append_all())
    world.loop.close()


def test_reader_follows_the_tail() -> None:
    world = sim_world()
    topic = topic_of(world.disk, segment_bytes_max=2000)
    found: list[Any] = []

    async def follow() -> None:
        with PartitionReader(topic, 0) as reader:
            async for entry in reader.follow():
                found.extend(listed(entry))
                if len(found) == 30:
                    return

    async def write() -> None:
        with PartitionWriter(topic, 0, world.clock) as writer:
            for number in range(10):
                await world.clock.sleep(0.2)
                writer.append(records_of(rows_of(3 * number, 3)))

    async def both() -> None:
        await asyncio.gather(follow(), write())

    world.loop.run_until_complete(both())
    world.loop.close()
    assert found == rows_of(0, 30)


def marked_topic() -> tuple[Topic, list[Any]]:
    topic = topic_of(SimDisk())
    expected: list[Any] = []
    with PartitionWriter(topic, 0, ManualClock()) as writer:
        for number in range(12):
            rows = rows_of(len(expected), 1 + number % 4)
            writer.append(records_of(rows))
            expected += rows
            if number % 5 == 4:
                writer.mark(number)
                expected.append(number)
    return topic, expected


@pytest.mark.parametrize("batch_rows", [1, 4, 1000, None])
def test_source_gives_batches_and_markers_in_order(batch_rows: int | None) -> None:
    topic, expected = marked_topic()
    source = LogSource(topic, 0, batch_rows=batch_rows)
    for start in range(len(expected) + 1):
        found: list[Any] = []
        for entry in source.batches(start):
            found += listed(entry)
            assert entry.next_offset == start + len(found)
            assert isinstance(entry, Marker) or len(entry.records) <= (batch_rows or 4)
        assert found == expected[start:]
    stopped = LogSource(topic, 0, batch_rows=batch_rows, to_offset=9)
    assert [row for entry in stopped.batches(2) for row in listed(entry)] == expected[2:9]
    with pytest.raises(InputError, match="does not exist"):
        list(source.batches(len(expected) + 1))
    source.sync()
    source.close()


def test_source_screens_records_at_their_offsets() -> None:
    topic, expected = marked_topic()
    shape = RecordShape(SCHEMA, {"at_ns": Checks(gt=0)}, ("symbol", "at_ns"))
    bad = []
    for entry in LogSource(topic, 0, shape=shape, batch_rows=3).batches():
        if isinstance(entry, Batch):
            bad += [one.offset for one in entry.rejected]
            for offset, row in zip(entry.offsets(), entry.records.to_pylist(), strict=True):
                assert row == {name: expected[offset][name] for name in ("symbol", "at_ns")}
    assert bad == [
        offset for offset, row in enumerate(expected) if isinstance(row, dict) and row["at_ns"] <= 0
    ]


def test_retention_by_size_removes_whole_segments() -> None:
    topic = topic_of(SimDisk(), segment_bytes_max=1500, retention_bytes_max=4000)
    with PartitionReader(topic, 0) as reader:
        reader.seek(0)
        with PartitionWriter(topic, 0, ManualClock()) as writer:
            for number in range(12):
                writer.append(records_of(rows_of(3 * number, 3)))
            first = writer.first_offset
            assert 0 < first < 33
            assert read_all(topic) == rows_of(first, 36 - first)
            with pytest.raises(OffsetOutOfRangeError, match=f"available is {first}") as raised:
                reader.seek(0)
            assert raised.value.first_offset == first
            with pytest.raises(OffsetOutOfRangeError, match="removed by retention"):
                LogSource(topic, 0).batches().__next__()
    with PartitionWriter(topic, 0, ManualClock()) as writer:
        assert (writer.first_offset, writer.next_offset) == (first, 36)


@pytest.mark.parametrize("age_by", ["clock", "event"])
def test_retention_by_age_keeps_the_active_segment(age_by: str) -> None:
    clock = ManualClock()
    topic = topic_of(SimDisk(), segment_bytes_max=1500, retention_age_ns_max=100, age_by=age_by)
    with PartitionWriter(topic, 0, clock) as writer:
        for number in range(8):
            writer.append(records_of(rows_of(3 * number, 3)))
            clock.time_ns += 30
        assert 0 < writer.first_offset < 21
        writer.retain()
        kept = writer.first_offset
        clock.time_ns += 10**6
        writer.retain()
        assert writer.first_offset == (writer.next_offset - 6 if age_by == "clock" else kept)


def test_segments_roll_by_age() -> None:
    clock = ManualClock()
    disk = SimDisk()
    settings = LogSettings(segment_age_ns_max=100)
    topic = Topic.create(disk, "ticks", SCHEMA, time_field="at_ns", settings=settings)
    with PartitionWriter(topic, 0, clock) as writer:
        for number in range(6):
            writer.append(records_of(rows_of(number, 1)))
            clock.time_ns += 60
    names = [name for name in disk.list("ticks/0") if name.endswith(".log")]
    assert [int(name[:20]) for name in names] == [0, 2, 4]

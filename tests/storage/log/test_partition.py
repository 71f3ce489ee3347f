from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ripple.core.codec.compression import Compression
from ripple.core.errors import LimitError, SchemaError
from ripple.model.batch import Batch
from ripple.model.schema.types import Field, FieldType, Int, List, Record, Schema, String
from ripple.storage.log import (
    LogSettings,
    OffsetOutOfRangeError,
    PartitionReader,
    PartitionWriter,
    SequenceError,
    StaleEpochError,
    Stamp,
    Topic,
    TopicError,
    WriterFailedError,
)
from ripple.storage.log import writer as writer_module
from ripple.storage.log.body import columns_of
from ripple.storage.log.index import Index
from ripple.testing.sim.disk import SimDisk
from ripple.world import DiskLockedError
from tests.storage.log.trades import (
    SCHEMA,
    ManualClock,
    StoredFile,
    listed,
    read_all,
    records_of,
    rows_of,
    topic_of,
)


@pytest.fixture
def disk() -> SimDisk:
    return SimDisk()


def test_topic_created_and_opened_is_the_same(disk: SimDisk) -> None:
    settings = LogSettings(compression=Compression.ZSTD, age_by="event", retention_bytes_max=99)
    made = Topic.create(
        disk, "a/b", SCHEMA, partitions=3, key=["symbol"], time_field="at_ns", settings=settings
    )
    assert Topic.open(disk, "a/b") == made
    with pytest.raises(TopicError, match="already"):
        Topic.create(disk, "a/b", SCHEMA)


def test_topic_with_a_damaged_description_is_refused(disk: SimDisk) -> None:
    topic_of(disk)
    path = StoredFile(disk, "ticks/topic")
    whole = path.read_bytes()
    for at in range(len(whole) - 1):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with pytest.raises(TopicError):
            Topic.open(disk, "ticks")
    for at in range(len(whole) - 1):
        path.write_bytes(whole[:at])
        with pytest.raises(TopicError):
            Topic.open(disk, "ticks")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"partitions": 0}, TopicError),
        ({"partitions": 10_001}, TopicError),
        ({"key": ["nothing"]}, SchemaError),
        ({"time_field": "nothing"}, SchemaError),
        ({"time_field": "symbol"}, SchemaError),
    ],
)
def test_topic_that_cannot_be_is_refused(
    disk: SimDisk, arguments: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        Topic.create(disk, "ticks", SCHEMA, **arguments)
    with pytest.raises(TopicError, match="no topic"):
        Topic.open(disk, "ticks")


def nested(depth: int) -> FieldType:
    return List(nested(depth - 1)) if depth else Record((Field("a", String()),))


def test_topic_whose_frames_could_not_be_read_is_refused(disk: SimDisk) -> None:
    Topic.create(disk, "ticks", Schema("s", (Field("f", nested(6)),)))
    topic = Topic.open(disk, "ticks")
    row = {"f": [[[[[[{"a": "x"}]]]]]]}
    with PartitionWriter(topic, 0, ManualClock()) as writer:
        writer.append(pa.RecordBatch.from_pylist([row], schema=columns_of(topic.schema)))
    assert read_all(topic) == [row]
    with pytest.raises(SchemaError, match=r"schema s is not for a log: f.* nested deeper than 8"):
        Topic.create(disk, "deep", Schema("s", (Field("f", nested(7)),)))
    names = tuple(Field(f"{number:0250}", Int()) for number in range(4000))
    with pytest.raises(TopicError, match="exceeds DESCRIPTION_BYTES_MAX"):
        Topic.create(disk, "wide", Schema("s", names))
    for path in ("deep", "wide"):
        with pytest.raises(TopicError, match="no topic"):
            Topic.open(disk, path)


def test_setting_out_of_range_is_refused_by_name() -> None:
    with pytest.raises(TopicError, match="batch_bytes_max"):
        LogSettings(batch_bytes_max=0)
    with pytest.raises(TopicError, match="age_by"):
        LogSettings(age_by="moon")


def test_second_writer_is_refused_naming_the_holder(disk: SimDisk) -> None:
    topic = topic_of(disk)
    with (
        PartitionWriter(topic, 0, ManualClock(), holder="alice"),
        pytest.raises(DiskLockedError, match="alice"),
    ):
        PartitionWriter(topic, 0, ManualClock(), holder="bob")
    PartitionWriter(topic, 0, ManualClock(), holder="bob").close()


def test_closed_writer_takes_no_more(disk: SimDisk) -> None:
    writer = PartitionWriter(topic_of(disk), 0, ManualClock())
    writer.close()
    writer.close()
    with pytest.raises(WriterFailedError, match="closed"):
        writer.append(records_of(rows_of(0, 1)))


def test_retried_append_is_stored_once(disk: SimDisk) -> None:
    topic = topic_of(disk)
    with PartitionWriter(topic, 0, ManualClock()) as writer:
        for number in range(7):
            rows = records_of(rows_of(3 * number, 3))
            first = writer.append(rows, Stamp(9, 0, number))
            again = writer.append(rows, Stamp(9, 0, number))
            assert (first[:2], first.is_new, again.is_new) == (again[:2], True, False)
    with PartitionWriter(topic, 0, ManualClock()) as writer:
        for number in range(2, 7):
            again = writer.append(records_of(rows_of(3 * number, 3)), Stamp(9, 0, number))
            assert again == (3 * number, 3 * number + 3, False)
        with pytest.raises(SequenceError, match="only the last 5"):
            writer.append(records_of(rows_of(0, 3)), Stamp(9, 0, 1))
        with pytest.raises(SequenceError, match="batch of 3 records"):
            writer.append(records_of(rows_of(0, 4)), Stamp(9, 0, 6))
    assert read_all(topic) == rows_of(0, 21)


def test_gap_in_sequence_and_stale_epoch_are_refused(disk: SimDisk) -> None:
    topic = topic_of(disk)
    rows = records_of(rows_of(0, 1))
    with PartitionWriter(topic, 0, ManualClock()) as writer:
        with pytest.raises(SequenceError, match="where 0 is next"):
            writer.append(rows, Stamp(1, 0, 1))
        writer.append(rows, Stamp(1, 0, 0))
        with pytest.raises(SequenceError, match="where 1 is next"):
            writer.append(rows, Stamp(1, 0, 2))
        writer.append(rows, Stamp(1, 4, 0))
        with pytest.raises(StaleEpochError, match="epoch 4"):
            writer.append(rows, Stamp(1, 0, 1))
        with pytest.raises(SequenceError, match="negative"):
            writer.append(rows, Stamp(-1, 0, 0))
        assert writer.next_offset == 2


def test_records_of_another_type_are_refused(disk: SimDisk) -> None:
    rows = records_of(rows_of(0, 5))
    with PartitionWriter(topic_of(disk), 0, ManualClock()) as writer:
        with pytest.raises(SchemaError, match="at_ns"):
            writer.append(rows.drop_columns(["at_ns"]))
        with pytest.raises(SchemaError, match="types"):
            writer.append(rows.set_column(2, "at_ns", rows.column("symbol")))
        with pytest.raises(SchemaError, match="'at_ns' is none in 1"):
            writer.append(rows.set_column(2, "at_ns", rows.column("size")))
        text = pa.array([b"a", b"b", b"\xff", b"d", b"e"], pa.binary()).view(pa.string())
        with pytest.raises(SchemaError, match="'symbol' of record 2 is not valid UTF-8"):
            writer.append(rows.set_column(0, "symbol", text))
        assert writer.append(rows.slice(0, 0)) == (0, 0, False)
        shuffled = rows.select(["at_ns", "size", "symbol"])
        assert writer.append(shuffled.slice(2)).next_offset == 3
    assert read_all(writer.topic) == rows_of(2, 3)


def test_batch_beyond_the_limit_is_refused(disk: SimDisk) -> None:
    with PartitionWriter(topic_of(disk, batch_bytes_max=2000), 0, ManualClock()) as writer:
        writer.append(records_of(rows_of(0, 10)))
        with pytest.raises(LimitError, match="batch_bytes_max"):
            writer.append(records_of(rows_of(10, 100)))
        assert writer.next_offset == 10


@pytest.mark.parametrize("compression", list(Compression))
def test_reading_from_every_offset_gives_the_rest(disk: SimDisk, compression: Compression) -> None:
    topic = topic_of(
        disk, segment_bytes_max=4000, index_interval_bytes=1500, compression=compression
    )
    expected: list[Any] = []
    with PartitionWriter(topic, 0, ManualClock()) as writer:
        while len(expected) < 120:
            rows = rows_of(len(expected), 1 + len(expected) % 11)
            writer.append(records_of(rows))
            writer.mark(len(expected))
            expected += [*rows, len(expected)]
        # While the writer is there, and after it has written its last index.
        for offset in range(len(expected) + 1):
            assert read_all(topic, offset) == expected[offset:]
    for offset in range(len(expected) + 1):
        assert read_all(topic, offset) == expected[offset:]
    with PartitionReader(topic, 0) as reader:
        middle = [row for entry in reader.read(13, 57) for row in listed(entry)]
        assert middle == expected[13:57]
        with pytest.raises(OffsetOutOfRangeError, match=f"ends at {len(expected)}"):
            reader.seek(len(expected) + 1)


def test_seeking_by_time_finds_the_first_record_as_late(disk: SimDisk) -> None:
    topic = topic_of(disk, segment_bytes_max=6000, index_interval_bytes=1000)
    expected: list[Any] = []
    with PartitionWriter(topic, 0, ManualClock()) as writer:
        while len(expected) < 100:
            rows = rows_of(len(expected), 1 + len(expected) % 7)
            writer.append(records_of(rows))
            writer.mark(10**6)
            expected += [*rows, None]
        with PartitionReader(topic, 0) as reader:
            # Some of them are of times for which there are no nanoseconds in 64 bits.
            for time_ns in (-(10**30), *range(-60, 1100, 7), 10**30):
                late = [i for i, row in enumerate(expected) if row and row["at_ns"] >= time_ns]
                assert reader.seek_time(time_ns) == (late[0] if late else len(expected))
                entry = reader.next()
                assert (entry is None) == (not late)
                assert not late or listed(entry)[0] == expected[late[0]]


def test_reader_of_a_partition_never_written_waits(disk: SimDisk) -> None:
    topic = topic_of(disk)
    with PartitionReader(topic, 0) as reader:
        assert reader.range() == (0, 0)
        assert list(reader.read()) == []
        assert reader.seek_time(5) == 0
        with pytest.raises(OffsetOutOfRangeError):
            reader.seek(1)
        with PartitionWriter(topic, 0, ManualClock()) as writer:
            assert reader.next() is None
            writer.append(records_of(rows_of(0, 2)))
            assert listed(reader.next()) == rows_of(0, 2)
        with pytest.raises(TopicError, match="no partition 1"):
            PartitionReader(topic, 1)


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 20)),
        st.tuples(st.just("stamped"), st.integers(1, 20)),
        st.just(("retry", 0)),
        st.tuples(st.just("mark"), st.integers(-(2**62), 2**62)),
        st.just(("sync", 0)),
        st.just(("reopen", 0)),
        st.just(("kill", 0)),
        st.tuples(st.just("read"), st.integers(0, 60)),
    ),
    max_size=30,
)


@given(
    OPERATIONS,
    st.sampled_from(list(Compression)),
    st.sampled_from([1, 3, 0]),
    st.sampled_from([700, 3000, 1 << 20]),
)
def test_partition_is_a_list(
    operations: list[tuple[str, int]],
    compression: Compression,
    sync_appends: int,
    segment_bytes_max: int,
) -> None:
    topic = topic_of(
        SimDisk(),
        compression=compression,
        sync_appends=sync_appends,
        segment_bytes_max=segment_bytes_max,
        index_interval_bytes=800,
    )
    history = History(topic)
    for name, number in operations:
        getattr(history, name)(number)
        history.check()
    history.reopen(0)
    history.close()
    assert read_all(topic) == history.model


class History:
    """A writer and a reader that follows it, beside the list that they should be."""

    def __init__(self, topic: Topic) -> None:
        self.model: list[Any] = []
        self._topic = topic
        self._writer = PartitionWriter(topic, 0, ManualClock())
        self._tail = PartitionReader(topic, 0)
        self._tailed: list[Any] = []
        self._sequence = 0
        self._last: tuple[list[Any], Stamp, int] | None = None

    def append(self, count: int, stamp: Stamp | None = None) -> None:
        first, rows = len(self.model), rows_of(len(self.model), count)
        assert self._writer.append(records_of(rows), stamp) == (first, first + count, True)
        self.model += rows
        if stamp:
            self._last = rows, stamp, first

    def stamped(self, count: int) -> None:
        self.append(count, Stamp(5, 0, self._sequence))
        self._sequence += 1

    def retry(self, _: int) -> None:
        if self._last:
            rows, stamp, first = self._last
            again = self._writer.append(records_of(rows), stamp)
            assert again == (first, first + len(rows), False)

    def mark(self, watermark_ns: int) -> None:
        assert self._writer.mark(watermark_ns).first_offset == len(self.model)
        self.model.append(watermark_ns)

    def sync(self, _: int) -> None:
        assert self._writer.sync() == len(self.model) == self._writer.durable_offset

    def reopen(self, _: int) -> None:
        self._writer.close()
        self._writer = PartitionWriter(self._topic, 0, ManualClock())

    def kill(self, _: int) -> None:
        """Leave what a killed process leaves: all it wrote, no index, no lock."""
        self._writer._file.close()
        self._writer._locks.release()
        self._writer = PartitionWriter(self._topic, 0, ManualClock())
        assert self._writer.tail is None

    def read(self, offset: int) -> None:
        offset = min(offset, len(self.model))
        assert read_all(self._topic, offset) == self.model[offset:]

    def check(self) -> None:
        while (entry := self._tail.next()) is not None:
            self._tailed += listed(entry)
        assert self._tailed == self.model
        assert self._writer.next_offset == len(self.model)

    def close(self) -> None:
        self._writer.close()
        self._tail.close()


def test_readers_go_on_from_what_an_open_writer_has_indexed(
    disk: SimDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "APPENDS_PER_INDEX", 10)
    topic = topic_of(disk, index_interval_bytes=1000)
    gone_through = []
    add = Index.add
    with PartitionWriter(topic, 0, ManualClock()) as writer:
        for first in range(25):
            writer.append(records_of(rows_of(first, 1)))
        monkeypatch.setattr(
            Index, "add", lambda index, header: (gone_through.append(1), add(index, header))
        )
        with PartitionReader(topic, 0) as reader:
            for offset in (23, 3, 19):
                reader.seek(offset)
                entry = reader.next()
                assert entry is not None
                assert entry.next_offset == offset + 1
    assert len(gone_through) == 5 + 1 + 1  # the last frame is looked at again


@pytest.mark.parametrize("frames", [1, 2, 5])
def test_readers_forget_what_they_have_indexed_when_it_was_cut_off(
    disk: SimDisk, frames: int
) -> None:
    """A failed sync takes frames back that readers have seen, and others come in their place."""
    topic = topic_of(disk)
    with PartitionWriter(topic, 0, ManualClock()) as writer:
        writer.append(records_of(rows_of(0, 10)))
        log, notes = (
            StoredFile(disk, path) for path in ("ticks/0/" + "0" * 20 + ".log", "ticks/0.durable")
        )
        kept = log.read_bytes(), notes.read_bytes()
        with PartitionReader(topic, 0) as reader:
            for _ in range(2):
                writer.append(records_of(rows_of(20, 3)))
            reader.seek(14)
            writer.close()
            StoredFile(disk, "ticks/0/" + "0" * 20 + ".index").unlink()
            log.write_bytes(kept[0])
            notes.write_bytes(kept[1])
            with PartitionWriter(topic, 0, ManualClock()) as again:
                for _ in range(frames):
                    again.append(records_of(rows_of(40, 4)))
                assert reader.range() == (0, 10 + 4 * frames)
                reader.close()
                reader.seek(10)
                entry = reader.next()
                assert isinstance(entry, Batch)
                assert entry.records.to_pylist() == rows_of(40, 4)

"""Logs as places: where a pipeline reads, in the words of a user."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import ripple as rp
from ripple.connectors.contract import BasicSink, Commit
from ripple.connectors.locate import open_source
from ripple.connectors.log.source import LogSource
from ripple.core.errors import InputError, RippleError, SchemaError
from ripple.model.batch import Batch, Marker
from ripple.model.schema.types import Field, Int64, Schema, String
from ripple.storage.log import PartitionWriter, Topic, TopicError
from ripple.storage.log_uri import LogUri
from ripple.task.one_shot import entries
from ripple.testing import SimDisk
from ripple.world import LiveDisk
from tests.storage.log.test_sharing import marked_topic
from tests.storage.log.trades import SCHEMA, ManualClock, listed, records_of, rows_of


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("log:trades", (".", "trades", None)),
        ("log:d/trades", ("d", "trades", None)),
        ("log:/a/d/trades/12", ("/a/d", "trades", 12)),
        ("log:d/trades/", ("d", "trades", None)),
        ("log:7", (".", "7", None)),
        ("log:d/7/0", ("d", "7", 0)),
        ("log:../trades/0", ("..", "trades", 0)),
        ("d/trades/3", ("d", "trades", 3)),
        ("../../d/./trades", ("../../d", "trades", None)),
        ("/../d/trades", ("/../d", "trades", None)),
    ],
)
def test_place_is_folder_topic_and_partition(text: str, place: Any) -> None:
    assert LogUri.parse(text) == place


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("log:", "cannot tell which log"),
        ("log:/", "cannot tell which log"),
        ("log:..", "cannot tell which log"),
        ("", "cannot tell which log"),
        ("log:d/..", "leads out of 'd' again"),
        ("d/../../esc/x", "leads out of 'd' again"),
        ("/a/d/../x", "leads out of 'a' again"),
    ],
)
def test_invalid_log_uri_is_an_error(text: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        LogUri.parse(text)


@pytest.mark.parametrize(
    "path", ["", "/", "/a", "..", "a/../b", "a//b", "7", "a/000012", "a\nb", "\udcff"]
)
def test_name_that_no_topic_can_have_is_refused(path: str) -> None:
    disk = SimDisk()
    with pytest.raises(TopicError):
        Topic.create(disk, path, SCHEMA)
    assert disk.image() == {}
    with pytest.raises(TopicError):
        Topic.open(disk, path)


def test_partitions_without_a_description_get_no_new_one() -> None:
    """What is in them would be read as what it is not."""
    disk = SimDisk()
    topic = Topic.create(disk, "ticks", SCHEMA)
    PartitionWriter(topic, 0, ManualClock()).close()
    disk.remove("ticks/topic")
    with pytest.raises(TopicError, match="ticks/topic, which describes them, is missing"):
        Topic.create(disk, "ticks", SCHEMA)


def made(folder: Path, partitions: int = 1) -> Topic:
    topic = Topic.create(LiveDisk(folder), "ticks", SCHEMA, partitions=partitions)
    for partition in range(partitions):
        with PartitionWriter(topic, partition, ManualClock()) as writer:
            writer.append(records_of(rows_of(10 * partition, 5)))
    return topic


def test_log_is_read_to_its_present_end(tmp_path: Path) -> None:
    topic = made(tmp_path, partitions=2)
    source = open_source(f"log:{tmp_path}/ticks/1", SCHEMA, name="in", batch_rows=3)
    with PartitionWriter(topic, 1, ManualClock()) as writer:
        writer.append(records_of(rows_of(0, 4)))
    assert source.names == ("in",)
    assert [row for entry in entries(source, 3) for row in listed(entry)] == rows_of(10, 5)


def test_log_is_followed_by_a_waiting_reader(tmp_path: Path) -> None:
    topic = made(tmp_path)
    with PartitionWriter(topic, 0, ManualClock()) as writer:
        reading = LogSource(topic, 0, name="in").follow()
        assert (listed(next(reading)), next(reading)) == (rows_of(0, 5), None)
        writer.append(records_of(rows_of(5, 4)))
        assert (listed(next(reading)), next(reading)) == (rows_of(5, 4), None)


WIDER = Schema("wider", (*SCHEMA.fields, Field("venue", String())))
OTHER = Schema("other", (Field("symbol", Int64()),))


@pytest.mark.parametrize(
    ("place", "schema", "error", "words"),
    [
        ("ticks", SCHEMA, InputError, "choose one of its 2 partitions, as in log:.*ticks/0"),
        ("ticks/2", SCHEMA, InputError, "no partition 2: it has 0 to 1"),
        ("tocks", SCHEMA, InputError, r"tocks: there is no topic: create .*Did you mean ticks\?$"),
        ("", SCHEMA, InputError, r": there is no topic: create it .*Did you mean [^ ]+/ticks\?$"),
        ("trades", SCHEMA, InputError, r"trades: there is no topic: .*\(ripple log create\)$"),
        ("absent/ticks", SCHEMA, InputError, "there is no topic"),
        ("..", SCHEMA, InputError, "leads out of"),
        ("ticks/0", WIDER, SchemaError, "has no column 'venue'"),
        ("ticks/0", OTHER, SchemaError, "'symbol' .* is string, but the schema declares int64"),
    ],
)
def test_unreadable_log_is_reported(
    tmp_path: Path, place: str, schema: Schema, error: type[RippleError], words: str
) -> None:
    made(tmp_path, partitions=2)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(error, match=words):
        open_source(f"log:{tmp_path}/{place}", schema, name="in")
    assert sorted(tmp_path.rglob("*")) == before


def test_log_removed_while_it_is_followed_is_reported(tmp_path: Path) -> None:
    topic = made(tmp_path)
    reading = LogSource(topic, 0, name="in").follow()
    assert (listed(next(reading)), next(reading)) == (rows_of(0, 5), None)
    for name in topic.disk.list(topic.folder(0)):
        topic.disk.remove(f"{topic.folder(0)}/{name}")
    with pytest.raises(InputError, match="the log is gone"):
        next(reading)


@pytest.mark.parametrize("batch_rows", [1, 3, 4, 1000])
def test_cuts_are_the_same_from_wherever_reading_begins(batch_rows: int) -> None:
    topic, expected = marked_topic()
    source = LogSource(topic, 0, batch_rows=batch_rows)
    cuts = [entry.next_offset for entry in source.batches()]
    for start in range(len(expected) + 1):
        assert [entry.next_offset for entry in source.batches(start)] == [
            cut for cut in cuts if cut > start
        ]
    markers = [offset for offset, row in enumerate(expected) if isinstance(row, int)]
    ends = {*markers, *(marker + 1 for marker in markers), len(expected)}
    assert all(cut % batch_rows == 0 or cut in ends for cut in cuts)


@rp.record(version=1)
class Tick:
    symbol: str
    at_ns: rp.Timestamp


class Kept(BasicSink):
    """A sink that keeps what it is given."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def write(self, changes: pa.RecordBatch, reached: Commit) -> None:
        self.rows += changes.to_pylist()


class Marked:
    """An event, and a promise that ends the window."""

    name = "ticks"

    def batches(self, from_offset: int = 0) -> Any:
        columns = {"symbol": ["a"], "at_ns": [5]}
        yield Batch(pa.record_batch(columns), 1)
        yield Marker(10, 2)

    def close(self) -> None:
        pass


def test_marker_closes_windows_of_a_plain_run() -> None:
    plan = (
        rp.Pipeline("p")
        .source("ticks", Tick)
        .partition("by", key="symbol")
        .window("w", rp.Tumbling("10ns"))
        .fold("f", n=rp.count())
        .sink("out")
        .plan()
    )
    sink, seen = Kept(), []
    rp.run(plan, source=Marked(), sink=sink, on_batch=lambda *_: seen.append(len(sink.rows)))
    # Nothing after the event, the row after the marker, nothing more at the end.
    assert seen == [0, 1, 1]

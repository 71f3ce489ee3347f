"""Logs that say what they reach: cuts in parts, and logs that are not what the record says."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ripple.connectors.contract import NOWHERE, Commit
from ripple.connectors.files.text.cut_record import Owner
from ripple.connectors.log.sink import LogSink, topic_for
from ripple.core.errors import OutputError
from ripple.model.schema.types import Field, Float, Schema, String
from ripple.storage.log import LogSettings, PartitionReader, PartitionWriter, StaleEpochError, Topic
from ripple.testing.sim.disk import SimDisk
from ripple.world import Disk, DiskLockedError, LiveDisk
from tests.connectors.sinks.kit import (
    CUTS,
    KINDS,
    OWNER,
    SCHEMA,
    changes,
    number_after,
    reached,
    world_of,
    write,
)
from tests.storage.log.frozen import Frozen
from tests.storage.log.trades import ManualClock

WHOLE, PARTS = KINDS["log"], KINDS["log in parts"]


def topic_of(disk: Disk) -> Topic:
    return Topic.open(disk, "out")


def cut_to(disk: LiveDisk, frames: int) -> None:
    """Leave so many frames of the log, as a crash does, without a trace of later ones."""
    with PartitionReader(topic_of(disk), 0) as reader:
        entries = list(reader.read())
        assert 0 < frames < len(entries)
        position = sum(_lengths(reader, frames, entries))
    disk.remove("out/0.durable")
    for name in disk.list("out/0"):
        if name.endswith(".index"):
            disk.remove(f"out/0/{name}")
        elif name.endswith(".log"):
            file = disk.open(f"out/0/{name}")
            file.truncate(position)
            file.close()


def _lengths(reader: PartitionReader, frames: int, entries: list[Any]) -> list[int]:
    return [reader.frame_with(entry.next_offset - 1).header.length for entry in entries[:frames]]


def test_log_is_where_the_last_frame_says(tmp_path: Path) -> None:
    disk = LiveDisk(tmp_path)
    sink = WHOLE.open(world_of(disk))
    for number in range(3):
        sink.write(changes(number), reached(number))
    sink.close()  # nothing was committed, but readers have seen it
    again = WHOLE.open(world_of(disk))
    assert again.committed == reached(2)
    write(again, 3, CUTS)
    assert WHOLE.read(disk) == WHOLE.expected()


def test_text_that_is_not_utf8_is_refused_with_nothing_appended(tmp_path: Path) -> None:
    schema = Schema("s", (Field("op", String()), Field("k", String())))
    topic = Topic.create(LiveDisk(tmp_path), "out", schema)
    sink = LogSink(topic, 0, ManualClock(), name="log:out")
    text = pa.array([b"a", b"\xff"], pa.binary()).view(pa.string())
    with pytest.raises(OutputError, match="out/0: field 'k' of record 1 is not valid UTF-8"):
        sink.write(pa.record_batch({"k": text}), NOWHERE)
    sink.write(pa.record_batch({"k": text[:1]}), NOWHERE)
    sink.commit(NOWHERE)
    sink.close()
    with PartitionReader(topic, 0) as reader:
        [batch] = reader.read()
        assert batch.records.to_pylist() == [{"op": "set", "k": "a"}]


def frames_in(disk: Disk) -> int:
    with PartitionReader(topic_of(disk), 0) as reader:
        return len(list(reader.read()))


@pytest.mark.parametrize("frames", range(1, 6))
def test_cut_that_is_there_in_part_is_completed(tmp_path: Path, frames: int) -> None:
    disk = LiveDisk(tmp_path)
    sink = PARTS.open(world_of(disk))
    for number in range(4):  # of which the last one takes several frames
        sink.write(changes(number), reached(number))
    sink.close()
    assert frames_in(disk) == 6
    whole = PARTS.read(disk)
    cut_to(disk, frames)
    left = PARTS.read(disk)
    assert left == whole[: len(left)]
    sink = PARTS.open(world_of(disk))
    first = 1 if frames == 1 else 3
    assert sink.committed == reached(first - 1)
    if frames > 2:
        assert sink.unfinished == reached(3).cut
        with pytest.raises(OutputError, match=r"holds a part of .* up to \{'trades': 40\}"):
            sink.write(changes(4), reached(4))
        with pytest.raises(OutputError, match="is not complete"):
            sink.commit(reached(2))
    else:
        assert sink.unfinished is None
    for number in range(first, 4):
        sink.write(changes(number), reached(number))
    assert sink.unfinished is None
    sink.close()
    assert PARTS.read(disk) == whole


def test_partial_cut_can_be_abandoned_and_its_changes_are_known(
    tmp_path: Path,
) -> None:
    disk = LiveDisk(tmp_path)
    sink = PARTS.open(world_of(disk))
    sink.write(changes(0), reached(0))
    sink.commit(reached(0))
    mark = sink.mark()
    for number in range(1, 4):
        sink.write(changes(number), reached(number))
    sink.close()
    cut_to(disk, 4)
    sink = PARTS.open(world_of(disk))
    assert sink.unfinished == reached(3).cut
    shown = [row for batch in sink.written_since(mark) for row in batch.to_pylist()]
    assert shown == PARTS.read(disk)[int(mark) :]
    assert [*sink.written_since(sink.mark())] == []
    whole = sum(batch.num_rows for batch in sink.written_since(None))
    assert whole == len(PARTS.read(disk))
    sink.supersede()
    assert sink.unfinished is None
    sink.write(changes(4), reached(4))
    sink.commit(reached(4))
    sink.close()
    again = PARTS.open(world_of(disk))
    assert (again.committed, again.unfinished) == (reached(4), None)
    with pytest.raises(OutputError, match="but a checkpoint knows it up to 99999"):
        [*again.written_since("99999")]
    again.close()


def test_write_that_is_repeated_adds_nothing(tmp_path: Path) -> None:
    disk = LiveDisk(tmp_path)
    sink = PARTS.open(world_of(disk))
    sink.write(changes(3), reached(3))
    sink.write(changes(3), reached(3))
    sink.close()
    sink = PARTS.open(world_of(disk))
    sink.write(changes(3), reached(3))
    sink.close()
    assert len(PARTS.read(disk)) == changes(3).num_rows


def test_other_changes_for_the_same_cut_are_refused(tmp_path: Path) -> None:
    sink = WHOLE.open(world_of(LiveDisk(tmp_path)))
    sink.write(changes(3), reached(3))
    with pytest.raises(OutputError, match=r"holds 40 of 40 changes .* now they are 7"):
        sink.write(changes(3, rows=7), reached(3))
    sink.close()


def test_error_names_a_change_that_is_too_long(tmp_path: Path) -> None:
    sink = PARTS.open(world_of(LiveDisk(tmp_path)))
    long = changes(0).set_column(0, "symbol", pa.array(["a", "b" * 5000, "c"]))
    with pytest.raises(OutputError, match=r"a change is too long for the log: .* batch_bytes_max"):
        sink.write(long, reached(0))
    sink.close()


def test_log_without_changes_has_an_owner(tmp_path: Path) -> None:
    disk = LiveDisk(tmp_path)
    sink = WHOLE.open(world_of(disk))
    sink.write(changes(1), reached(1))
    sink.commit(reached(1))
    sink.close()
    with pytest.raises(OutputError, match="belongs to output 'out' of pipeline 'vwap'"):
        LogSink(topic_of(disk), 0, ManualClock(), Owner("ohlc", "out"))


def test_log_that_lost_committed_records_is_refused(tmp_path: Path) -> None:
    disk = LiveDisk(tmp_path)
    write(WHOLE.open(world_of(disk)), 0, 4)
    cut_to(disk, 2)
    with pytest.raises(OutputError, match="ends at offset 4, but 44 were committed: restore it"):
        WHOLE.open(world_of(disk))


def test_recreated_log_is_rejected(tmp_path: Path) -> None:
    disk = LiveDisk(tmp_path)
    write(WHOLE.open(world_of(disk)), 0, 4)
    for name in disk.list("out/0"):
        if name != "output.cut":
            disk.remove(f"out/0/{name}")
    with pytest.raises(OutputError, match="missing, but records up to 44 were durable"):
        WHOLE.open(world_of(disk))
    disk.remove("out/0.durable")
    with PartitionWriter(topic_of(disk), 0, ManualClock()) as writer:
        other = pa.record_batch({"op": ["set"] * 44, "symbol": ["S"] * 44, "total": [0] * 44})
        writer.append(other)
    with pytest.raises(OutputError, match="holds other records before offset 44"):
        WHOLE.open(world_of(disk))


def test_retention_leaves_the_cut(tmp_path: Path) -> None:
    disk = LiveDisk(tmp_path)
    settings = LogSettings(segment_bytes_max=1200, retention_bytes_max=1200, sync_appends=0)
    topic = Topic.create(disk, "out", SCHEMA, settings=settings)
    sink = WHOLE.open(world_of(disk))
    for number in range(CUTS):
        sink.write(changes(number), reached(number))
        sink.commit(reached(number))
    sink.close()
    with PartitionReader(topic, 0) as reader:
        assert reader.range()[0] > 0
    sink = WHOLE.open(world_of(disk))
    assert (sink.committed, sink.unfinished) == (reached(CUTS - 1), None)
    sink.close()


def test_appends_wait_for_the_commit_to_be_synced() -> None:
    disk = SimDisk()
    topic = topic_for(disk, "out", SCHEMA)
    sink = LogSink(topic, 0, ManualClock(), OWNER)
    before = disk.effects.names.count("sync")
    sink.write(changes(3), reached(3))
    assert disk.effects.names.count("sync") == before
    sink.commit(reached(3))
    assert disk.effects.names.count("sync") == before + 2  # the log, then the record
    sink.close()


def syncs_of(disk: SimDisk) -> tuple[int, int]:
    """Return the numbers of syncs of files and of folders."""
    names = disk.effects.names
    return names.count("sync"), names.count("sync_folder")


def test_a_cut_that_a_frame_tells_needs_no_durable_name_of_its_record() -> None:
    disk = SimDisk()
    sink = LogSink(topic_for(disk, "out", SCHEMA), 0, ManualClock(), OWNER)
    told = []
    for cut, rows in ((3, 3), (6, 3), (7, 0), (9, 2)):
        files, folders = syncs_of(disk)
        sink.write(changes(3).slice(0, rows), reached(cut))
        sink.commit(reached(cut))
        told.append((syncs_of(disk)[0] - files, syncs_of(disk)[1] - folders))
    sink.close()
    first, with_rows, without_rows, again = told
    assert with_rows == again == (2, 0)
    assert without_rows[1] == 1, "only the record tells it"
    assert first[1] >= 1, "it takes the place of earlier owners' records"


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ([Field("symbol", Float())], r"'symbol' \(double\) where the output has .* \(string\)"),
        ([Field("symbol", String(), True)], r"'symbol' \(string, may be none\) where"),
        ([], "has the fields op, the output has op, symbol, total"),
    ],
)
def test_topic_of_another_schema_is_refused(fields: list[Field], words: str) -> None:
    disk = SimDisk()
    Topic.create(disk, "out", Schema("other", (Field("op", String()), *fields)))
    with pytest.raises(OutputError, match=words):
        topic_for(disk, "out", SCHEMA)


def test_new_topics_of_outputs_are_compressed_and_old_ones_stay(tmp_path: Path) -> None:
    disk = LiveDisk(tmp_path)
    Topic.create(disk, "old", SCHEMA, settings=LogSettings(sync_appends=0))
    lengths = []
    for path in ("old", "new"):
        sink = LogSink(topic_for(disk, path, SCHEMA), 0, ManualClock(), OWNER)
        write(sink, 0, 1)
        with PartitionReader(Topic.open(disk, path), 0) as reader:
            lengths.append(reader.frame_with(0).header.stored_length)
    assert 2 * lengths[1] < lengths[0]


def test_plain_sink_appends_and_leaves_the_log_to_others(tmp_path: Path) -> None:
    topic = topic_for(LiveDisk(tmp_path), "out", SCHEMA)
    for number in (0, 3):
        sink = LogSink(topic, 0, ManualClock(), name="log:out")
        sink.write(changes(number), reached(number))
        sink.write(changes(1), reached(1))
        assert (sink.records_cut, sink.committed, sink.unfinished) == (False, None, None)
        sink.commit(reached(number))
        assert sink.committed is None
        sink.close()
    assert [row["total"] for row in WHOLE.read(topic.disk)[:5]] == [0, 1, None, 300, 301]


def test_commit_of_a_later_cut_with_the_same_rows_is_another(tmp_path: Path) -> None:
    disk = LiveDisk(tmp_path)
    sink = WHOLE.open(world_of(disk))
    sink.write(changes(0), reached(0))
    closed = Commit(reached(0).cut, "after the input's end")
    sink.write(changes(2), closed)
    sink.commit(closed)
    sink.close()
    sink = WHOLE.open(world_of(disk))
    assert sink.committed == closed
    sink.close()
    assert len(WHOLE.read(disk)) == 4


def test_replaced_sink_commits_nothing_and_each_cut_is_written_once() -> None:
    """The old owner stops at any call; the new one goes on from what is there; the old wakes."""
    expected = WHOLE.expected()
    stop_at = 1
    has_stopped = True
    while has_stopped:
        disk = SimDisk()
        Topic.create(disk, "out", SCHEMA, settings=LogSettings(sync_appends=0))
        promised = [0]
        old = Frozen(partial(live, epoch=2, promised=promised), disk, stop_at)
        has_stopped = old.start()
        before = promised[0]
        live(disk, 5, [before], at_half=old.wake)
        assert promised[0] <= before + 1, "it went on committing"
        assert old.error is None or isinstance(old.error, (StaleEpochError, DiskLockedError))
        assert WHOLE.read(disk) == expected
        again = owned(disk, 9)
        assert again.committed == reached(CUTS - 1)
        again.close()
        stop_at += 7
    assert stop_at > 100


def owned(disk: Disk, epoch: int) -> LogSink:
    return LogSink(topic_of(disk), 0, ManualClock(), OWNER, epoch=epoch)


def live(
    disk: Any, epoch: int, promised: list[int], at_half: Callable[[], None] = lambda: None
) -> None:
    """Write what is left, and commit each cut; ``promised`` counts them."""
    sink = owned(disk, epoch)
    number = number_after(sink.committed)
    assert number >= promised[0], "what was committed is forgotten"
    has_woken = False
    while number < CUTS:
        if number >= CUTS // 2 and not has_woken:
            has_woken = True
            at_half()
        sink.write(changes(number), reached(number))
        sink.commit(reached(number))
        number += 1
        promised[0] = number
    if not has_woken:
        at_half()
    sink.close()


def test_records_of_owners_before_go_once_there_is_a_newer_one(tmp_path: Path) -> None:
    disk = LiveDisk(tmp_path)
    for number, epoch in enumerate((1024, 2048, 3072)):
        sink = LogSink(topic_for(disk, "out", SCHEMA), 0, ManualClock(), OWNER, epoch=epoch)
        before = [name for name in disk.list("out/0") if name.endswith(".cut")]
        assert len(before) == min(number, 1), "until something else says what was reached"
        sink.write(changes(number), reached(number))
        sink.commit(reached(number))
        sink.close()
    records = [name for name in disk.list("out/0") if name.endswith(".cut")]
    assert records == ["output-0000003072.cut"]

"""What was durable is known to be missing when it is, to whoever looks; and nothing else is."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pytest

from ripple.connectors.log.source import LogSource
from ripple.storage.log import (
    LogDamagedError,
    OffsetOutOfRangeError,
    PartitionReader,
    PartitionWriter,
    Stamp,
    Topic,
)
from ripple.storage.log.durable import NOTE_BYTES, NOTES_BYTES_MAX, durable_offset, notes_path
from ripple.storage.log.reader import CALLS_PER_LOOK
from ripple.storage.log.verify import verify
from ripple.testing import SimDisk
from ripple.testing.sim.file import SimFile
from ripple.world import DiskFullError
from ripple.world.replacing import replace as replace_file
from tests.storage.log.trades import (
    ManualClock,
    StoredFile,
    files_of,
    forget_notes,
    listed,
    read_all,
    records_of,
    rows_of,
    topic_of,
)
from tests.storage.log.turns import shared, take_turns

APPENDS = 8
ROWS = 3
EXPECTED = rows_of(0, APPENDS * ROWS)
# Some appends in each segment, and more than one in the last.
SEGMENT_BYTES = 2700


def written(end: str, **settings: Any) -> Topic:
    """A topic of several segments, all of it durable; ``end``: how its writer ended."""
    settings = {"segment_bytes_max": SEGMENT_BYTES, **settings}
    topic = topic_of(SimDisk(), **settings)
    writer = PartitionWriter(topic, 0, ManualClock())
    for number in range(APPENDS):
        writer.append(
            records_of(EXPECTED[number * ROWS : (number + 1) * ROWS]), Stamp(1, 0, number)
        )
    if end == "killed":
        killed(writer)
    else:
        writer.close()
    if end == "closed by an older release":
        forget_notes(topic)
    return topic


def killed(writer: PartitionWriter) -> None:
    writer._file.close()
    writer._locks.release()


def flip_near_the_end(topic: Topic) -> None:
    last = files_of(topic)[-1]
    data = last.read_bytes()
    last.write_bytes(data[:-100] + bytes([data[-100] ^ 1]) + data[-99:])


def cut_within_the_last_frame(topic: Topic) -> None:
    last = files_of(topic)[-1]
    last.write_bytes(last.read_bytes()[:-1])


def cut_before_the_last_frame(topic: Topic) -> None:
    last = files_of(topic)[-1]
    data = last.read_bytes()
    last.write_bytes(data[: data.rindex(b"RLOG")])


def empty_the_last_segment(topic: Topic) -> None:
    files_of(topic)[-1].write_bytes(b"")


def remove_the_last_segment(topic: Topic) -> None:
    files_of(topic)[-1].unlink()


def remove_all_segments(topic: Topic) -> None:
    for path in files_of(topic):
        path.unlink()


def remove_the_last_segment_and_its_index(topic: Topic) -> None:
    remove_the_last_segment(topic)
    files_of(topic, ".index")[-1].unlink()


def remove_all_but_the_notes(topic: Topic) -> None:
    for path in files_of(topic, ""):
        path.unlink()


def remove_the_first_segment(topic: Topic) -> None:
    files_of(topic)[0].unlink()


SEEN_FROM_SEGMENTS = [
    flip_near_the_end,
    cut_within_the_last_frame,
    cut_before_the_last_frame,
    empty_the_last_segment,
    remove_the_last_segment,
    remove_all_segments,
    remove_the_first_segment,
]
SEEN_FROM_NOTES = [remove_the_last_segment_and_its_index, remove_all_but_the_notes]
CASES = [
    *[(end, damage) for end in ("closed", "killed") for damage in SEEN_FROM_SEGMENTS],
    *[(end, damage) for end in ("closed", "killed") for damage in SEEN_FROM_NOTES],
    *[("closed by an older release", damage) for damage in SEEN_FROM_SEGMENTS],
]


def contents(topic: Topic) -> dict[str, bytes]:
    """All files but the locks, which are there once somebody has tried to write."""
    image: dict[str, bytes] = topic.disk.image()  # type: ignore[attr-defined]
    return {path: data for path, data in image.items() if not path.endswith("/lock")}


def read_from(topic: Topic, offset: int | None) -> None:
    """Read to the end, having checked that what comes is a part of what was written."""
    found: list[Any] = []
    first = offset or 0
    try:
        with PartitionReader(topic, 0) as reader:
            for entry in reader.read(offset):
                found += listed(entry)
    finally:
        assert found == EXPECTED[first : first + len(found)] != EXPECTED[first:]


def follow(topic: Topic) -> None:
    source = LogSource(topic, 0, batch_rows=4).follow()
    while next(source) is not None:
        pass


@pytest.mark.parametrize(("end", "damage"), CASES)
def test_missing_durable_records_are_damage_to_everybody(
    end: str, damage: Callable[[Topic], None]
) -> None:
    topic = written(end)
    assert len(files_of(topic)) > 2
    damage(topic)
    left = contents(topic)
    acts: list[Callable[[], object]] = [
        lambda: read_from(topic, None),
        lambda: read_from(topic, 0),
        lambda: read_from(topic, len(EXPECTED) - 1),
        lambda: list(LogSource(topic, 0, batch_rows=4).batches()),
        lambda: follow(topic),
        lambda: PartitionWriter(topic, 0, ManualClock()),
        lambda: verify(topic, 0),
    ]
    if damage is not flip_near_the_end:  # of the last frame the range needs the header only
        acts.append(PartitionReader(topic, 0).range)
    for act in acts:
        with pytest.raises(LogDamagedError, match=r"ticks/0/\d{20}\.log .*offset"):
            act()
    assert contents(topic) == left


@pytest.mark.parametrize("end", ["closed", "killed", "closed by an older release"])
def test_whole_log_is_never_taken_for_damage(end: str) -> None:
    topic = written(end)
    assert read_all(topic) == EXPECTED
    follow(topic)
    assert verify(topic, 0).records == len(EXPECTED)
    with PartitionWriter(topic, 0, ManualClock()) as writer:
        assert writer.next_offset == len(EXPECTED)


def test_first_segments_that_retention_removed_are_no_damage() -> None:
    topic = written("closed", retention_bytes_max=SEGMENT_BYTES)
    first, end = PartitionReader(topic, 0).range()
    assert 0 < first < end == len(EXPECTED)
    assert read_all(topic) == EXPECTED[first:]
    assert verify(topic, 0).records == end - first


def test_unsynced_records_may_be_missing() -> None:
    topic = topic_of(SimDisk(), sync_appends=0)
    writer = PartitionWriter(topic, 0, ManualClock())
    for number in range(4):
        writer.append(records_of(EXPECTED[number * ROWS : (number + 1) * ROWS]))
        if number == 1:
            writer.sync()
    killed(writer)
    assert durable_offset(topic, 0) == 2 * ROWS
    cut_before_the_last_frame(topic)
    assert read_all(topic) == EXPECTED[: 3 * ROWS]
    cut_within_the_last_frame(topic)
    assert read_all(topic) == EXPECTED[: 2 * ROWS]
    for _ in range(2):
        cut_before_the_last_frame(topic)
    with pytest.raises(LogDamagedError, match="records up to 6 were durable"):
        read_all(topic)


def notes_of(topic: Topic) -> StoredFile:
    return StoredFile(topic.disk, notes_path(topic, 0))


def test_damaged_notes_say_less_and_never_more() -> None:
    topic = written("killed", segment_bytes_max=1 << 20)
    notes = notes_of(topic)
    whole = notes.read_bytes()
    known = set()
    for at in range(len(whole)):
        for data in (whole[:at], whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :]):
            notes.write_bytes(data)
            known.add(durable_offset(topic, 0))
            assert read_all(topic) == EXPECTED
    assert known == {0, *range(ROWS, len(EXPECTED) + 1, ROWS)}
    notes.write_bytes(whole[:-3])
    with PartitionWriter(topic, 0, ManualClock()) as writer:
        writer.append(records_of(EXPECTED[:ROWS]))
    assert durable_offset(topic, 0) == len(EXPECTED) + ROWS
    assert len(notes.read_bytes()) < len(whole)


def test_durable_notes_begin_anew_before_they_are_long() -> None:
    topic = topic_of(SimDisk())
    with PartitionWriter(topic, 0, ManualClock()) as writer:
        for number in range(600):
            writer.append(records_of(rows_of(number, 1)))
            assert durable_offset(topic, 0) == number + 1
            assert len(notes_of(topic).read_bytes()) <= NOTES_BYTES_MAX
    assert len(notes_of(topic).read_bytes()) == NOTE_BYTES


class NoRoomForNotes(SimDisk):
    """A disk that takes no notes."""

    def open(
        self, path: str, *, create: bool = False, exclusive: bool = False, like: str = ""
    ) -> SimFile:
        if ".durable" in path:
            raise DiskFullError(path)
        return super().open(path, create=create, exclusive=exclusive, like=like)


def test_unwritable_durable_notes_cause_no_failure() -> None:
    topic = topic_of(NoRoomForNotes(), segment_bytes_max=SEGMENT_BYTES)
    with PartitionWriter(topic, 0, ManualClock()) as writer:
        for number in range(APPENDS):
            writer.append(records_of(EXPECTED[number * ROWS : (number + 1) * ROWS]))
    assert read_all(topic) == EXPECTED
    remove_the_last_segment(topic)
    with pytest.raises(LogDamagedError, match=f"up to {len(EXPECTED)} were durable"):
        read_all(topic)


class KilledError(Exception):
    """The process of a writer has been killed."""


@dataclass
class Shared:
    """A topic that several jobs use at once, each with its own disk."""

    topic: Topic
    seed: int
    is_written: bool = False

    def seen_by(self, pause: Callable[[], None]) -> Topic:
        return replace(self.topic, disk=shared(self.topic.disk, pause))

    def write(self, pause: Callable[[], None]) -> None:
        """Append until all is there, by writers that are closed or killed after some calls."""
        random = Random(self.seed)
        while not self.is_written:
            self.topic.disk._locks.clear()  # type: ignore[attr-defined]
            calls_left = random.randrange(20, 150)

            def pause_or_die() -> None:
                nonlocal calls_left
                calls_left -= 1
                if calls_left < 0:
                    raise KilledError
                pause()

            topic = self.seen_by(pause_or_die)
            with suppress(KilledError), PartitionWriter(topic, 0, ManualClock()) as writer:
                for _ in range(random.randrange(4)):
                    writer.append(records_of(rows_of(writer.next_offset, random.randrange(1, 4))))
                self.is_written = writer.next_offset > len(EXPECTED)

    def read(self, pause: Callable[[], None]) -> None:
        """Follow the log, and hold what comes to what was appended."""
        topic = self.seen_by(pause)
        position = 0
        was_written = False
        with PartitionReader(topic, 0) as reader:
            reader.seek(0)
            while not was_written:
                was_written = self.is_written  # whoever looks from here on has to see all
                try:
                    while (entry := reader.next()) is not None:
                        rows = listed(entry)
                        assert rows == rows_of(position, len(rows))
                        position = entry.next_offset
                    assert position <= PartitionReader(topic, 0).range()[1]
                except OffsetOutOfRangeError as error:
                    assert topic.settings.has_retention
                    position = error.first_offset
                    reader.seek(position)
        assert position == PartitionReader(self.topic, 0).range()[1]

    def verify(self, pause: Callable[[], None]) -> None:
        """Verify the log over and over."""
        topic = self.seen_by(pause)
        while not self.is_written:
            with suppress(FileNotFoundError):  # a segment that retention has just removed
                verify(topic, 0)
            pause()


@pytest.mark.parametrize("retention_bytes", [0, SEGMENT_BYTES])
@pytest.mark.parametrize("seed", range(20))
def test_writer_at_work_is_never_taken_for_damage(seed: int, retention_bytes: int) -> None:
    """It appends, syncs, seals, retains, is closed and killed; others look at every moment."""
    topic = topic_of(
        SimDisk(),
        sync_appends=seed % 3,
        segment_bytes_max=SEGMENT_BYTES,
        retention_bytes_max=retention_bytes,
    )
    scene = Shared(topic, seed)
    take_turns(seed, scene.write, scene.read, scene.verify)
    assert scene.is_written


def test_reader_continues_in_a_rewritten_segment() -> None:
    """As a writer does after a sync that has failed: the file that is open is no longer the log."""
    topic = topic_of(SimDisk())
    with PartitionReader(topic, 0) as reader, PartitionWriter(topic, 0, ManualClock()) as writer:
        writer.append(records_of(EXPECTED[:ROWS]))
        writer._failure = "a sync failed"
        assert [listed(entry) for entry in reader.read()] == [EXPECTED[:ROWS]]
        writer.close()
        (segment,) = files_of(topic)
        replace_file(topic.disk, segment.path, segment.read_bytes())
        with PartitionWriter(topic, 0, ManualClock()) as another:
            another.append(records_of(EXPECTED[ROWS : 2 * ROWS]))
            polled = [entry for _ in range(CALLS_PER_LOOK + 1) if (entry := reader.next())]
        assert [listed(entry) for entry in polled] == [EXPECTED[ROWS : 2 * ROWS]]


def test_waiting_reader_is_notified_of_a_removed_segment() -> None:
    topic = topic_of(SimDisk())
    with PartitionReader(topic, 0) as reader, PartitionWriter(topic, 0, ManualClock()) as writer:
        writer.append(records_of(EXPECTED[:ROWS]))
        assert [listed(entry) for entry in reader.read()] == [EXPECTED[:ROWS]]
        before = files_of(topic)[0].read_bytes()
        writer.append(records_of(EXPECTED[ROWS : 2 * ROWS]))
        files_of(topic)[0].write_bytes(before)
        with pytest.raises(LogDamagedError, match="records up to 6 were durable"):
            [reader.next() for _ in range(CALLS_PER_LOOK + 1)]
        writer._failure = "so that it is closed as it is"

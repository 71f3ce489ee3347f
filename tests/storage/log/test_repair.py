"""What is lost can be given up: exactly that, counted, and by nobody's mistake."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ripple.storage.log import (
    LogDamagedError,
    LogError,
    PartitionReader,
    PartitionWriter,
    SequenceError,
    Stamp,
    Topic,
    identity,
)
from ripple.storage.log import repair as repairs
from ripple.storage.log.reader import GIVEN_UP
from ripple.storage.log.repair import find_loss, give_up
from ripple.storage.log.verify import verify
from ripple.testing import SimDisk, SimWorld, enumerate_crashes
from ripple.world import DiskLockedError
from tests.storage.log.trades import (
    SCHEMA,
    ManualClock,
    StoredFile,
    all_of,
    files_of,
    listed,
    read_all,
    records_of,
    rows_of,
    topic_of,
)

APPENDS = 12
ROWS = 3
EXPECTED = rows_of(0, APPENDS * ROWS)
# Four appends in each segment: offsets 0 to 11, 12 to 23, 24 to 35.
SEGMENT_BYTES = 3000


def written(disk: SimDisk | None = None, **settings: Any) -> Topic:
    topic = topic_of(disk or SimDisk(), segment_bytes_max=SEGMENT_BYTES, **settings)
    with PartitionWriter(topic, 0, ManualClock()) as writer:
        for number in range(APPENDS):
            rows = EXPECTED[number * ROWS : (number + 1) * ROWS]
            writer.append(records_of(rows), Stamp(1, 0, number))
    assert [file.name[:20].lstrip("0") for file in files_of(topic)] == ["", "12", "24"]
    return topic


def frames_of(data: bytes) -> list[int]:
    """Where frames begin."""
    return [at for at in range(0, len(data), 8) if data[at : at + 4] == b"RLOG"]


def flip(segment: int, frame: int, within: int) -> Callable[[Topic], None]:
    def damage(topic: Topic) -> None:
        file = files_of(topic)[segment]
        data = bytearray(file.read_bytes())
        data[frames_of(data)[frame] + within] ^= 0x10
        file.write_bytes(bytes(data))

    return damage


def cut(segment: int, frame: int, within: int = 0) -> Callable[[Topic], None]:
    def damage(topic: Topic) -> None:
        file = files_of(topic)[segment]
        data = file.read_bytes()
        file.write_bytes(data[: frames_of(data)[frame] + within])

    return damage


def remove(*chosen: int) -> Callable[[Topic], None]:
    def damage(topic: Topic) -> None:
        files = files_of(topic)
        for number in chosen:
            files[number].unlink()

    return damage


DAMAGE = {
    "a body in the middle": (flip(1, 1, 200), [(15, 18)]),
    "a header in the middle": (flip(1, 1, 20), [(15, 18)]),
    "the first frame": (flip(0, 0, 100), [(0, 3)]),
    "the last frame of a sealed segment": (flip(0, 3, 100), [(9, 12)]),
    "the first frame of a later segment": (flip(2, 0, 100), [(24, 27)]),
    "the last frame": (flip(2, 3, 300), [(33, 36)]),
    "the end": (cut(2, 2, 50), [(30, 36)]),
    "the end, between two frames": (cut(2, 2), [(30, 36)]),
    "the end of a sealed segment": (cut(1, 3, 50), [(21, 24)]),
    "all of a sealed segment": (cut(1, 0), [(12, 24)]),
    "all of the last segment": (cut(2, 0), [(24, 36)]),
    "the first segment": (remove(0), [(0, 12)]),
    "a segment in the middle": (remove(1), [(12, 24)]),
    "the last segment": (remove(2), [(24, 36)]),
    "two segments": (remove(0, 2), [(0, 12), (24, 36)]),
    "all segments": (remove(0, 1, 2), [(0, 36)]),
}


def both(*damages: Callable[[Topic], None]) -> Callable[[Topic], None]:
    def damage(topic: Topic) -> None:
        for one in damages:
            one(topic)

    return damage


DAMAGE["two frames apart"] = (both(flip(0, 1, 100), flip(2, 2, 30)), [(3, 6), (30, 33)])
DAMAGE["two frames in a row"] = (both(flip(1, 1, 100), flip(1, 2, 30)), [(15, 21)])
DAMAGE["what two segments have in common"] = (
    both(flip(0, 3, 100), flip(1, 0, 100)),
    [(9, 12), (12, 15)],
)


@pytest.mark.parametrize("lost_offsets_max", [4, 16_384])
@pytest.mark.parametrize("name", DAMAGE)
def test_repair_gives_up_exactly_the_lost_offsets(
    name: str, lost_offsets_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repairs, "LOST_OFFSETS_MAX", lost_offsets_max)
    topic = written()
    damage, spans = DAMAGE[name]
    damage(topic)
    damaged = {file.name: file.read_bytes() for file in files_of(topic)}
    given_up = []
    while (loss := find_loss(topic, 0)) is not None:
        given_up.append((loss.first_offset, loss.next_offset))
        kept = give_up(topic, 0, loss.first_offset, loss.next_offset)
        if kept is not None:
            was = StoredFile(topic.disk, kept)
            assert was.read_bytes() == damaged[was.name.removesuffix(".damaged-1")]
    assert given_up == spans
    gone = {offset for first, end in spans for offset in range(first, end)}
    for start in range(0, len(EXPECTED) + 1, 5):
        with PartitionReader(topic, 0) as reader:
            rows, reasons = all_of(reader.read(start))
        assert reasons == {at: GIVEN_UP for at in gone if at >= start}
        assert rows == {
            at: row for at, row in enumerate(EXPECTED) if at >= start and at not in gone
        }
    assert verify(topic, 0).given_up == len(gone)
    with PartitionWriter(topic, 0, ManualClock()) as writer:
        assert writer.append(records_of(EXPECTED[:2])).first_offset == len(EXPECTED)
    assert read_all(topic, len(EXPECTED)) == EXPECTED[:2]
    assert verify(topic, 0).given_up == len(gone)


def test_only_what_is_lost_can_be_given_up() -> None:
    topic = written()
    with pytest.raises(LogError, match="nothing is lost"):
        give_up(topic, 0, 0, 3)
    flip(1, 1, 200)(topic)
    before = topic.disk.image()  # type: ignore[attr-defined]
    for first, end in ((15, 17), (14, 18), (15, 19), (0, 36)):
        with pytest.raises(LogError, match="the lost offsets are 15-17"):
            give_up(topic, 0, first, end)
    assert topic.disk.image() == before  # type: ignore[attr-defined]


def test_repair_is_refused_while_a_writer_is_active() -> None:
    topic = written()
    with (
        PartitionWriter(topic, 0, ManualClock(), holder="the importer"),
        pytest.raises(DiskLockedError, match="the importer"),
    ):
        give_up(topic, 0, 0, 3)


def test_frames_of_another_log_are_no_loss() -> None:
    """They are sound: without the first of them, the others would be taken for records of this."""
    topic, other = written(), written(sync_appends=0)
    ours, theirs = files_of(topic)[1], files_of(other)[1]
    ours.write_bytes(theirs.read_bytes())
    with pytest.raises(LogDamagedError, match="does not continue"):
        find_loss(topic, 0)
    with pytest.raises(LogDamagedError, match="does not continue"):
        give_up(topic, 0, 12, 15)


def test_producer_cannot_continue_after_a_lost_append_unnoticed() -> None:
    topic = written()
    flip(2, 3, 300)(topic)
    give_up(topic, 0, 33, 36)
    with PartitionWriter(topic, 0, ManualClock()) as writer:
        with pytest.raises(SequenceError, match="append the missing ones first"):
            writer.append(records_of(EXPECTED[:1]), Stamp(1, 0, APPENDS))
        assert writer.append(records_of(EXPECTED[33:]), Stamp(1, 0, APPENDS - 1)).is_new


def test_cut_in_what_was_given_up_is_one_of_this_log() -> None:
    topic = written()
    with PartitionReader(topic, 0) as reader:
        known = [identity.identity_at(reader, offset) for offset in range(len(EXPECTED) + 1)]
    flip(1, 1, 200)(topic)
    give_up(topic, 0, 15, 18)
    with PartitionReader(topic, 0) as reader:
        for offset, text in enumerate(known):
            identity.check_identity(reader, offset, text)


def test_repair_is_done_or_not_whatever_crashes() -> None:
    whole = SimDisk()
    flip(1, 1, 200)(written(whole))
    image = whole.image()

    def repair(world: SimWorld, seed: int) -> None:
        if not world.disk.exists("ticks/topic"):
            world.disk.install(image)
        topic = Topic.open(world.disk, "ticks")
        if find_loss(topic, 0) is not None:
            give_up(topic, 0, 15, 18)
        assert verify(topic, 0).given_up == 3

    def check(world: SimWorld, seed: int) -> None:
        if not world.disk.exists("ticks/topic"):
            return
        found: list[Any] = []
        is_damaged = False
        try:
            with PartitionReader(Topic.open(world.disk, "ticks"), 0) as reader:
                for entry in reader.read():
                    found += listed(entry)
        except LogDamagedError:
            is_damaged = True
        assert found == (EXPECTED[:15] if is_damaged else EXPECTED[:15] + EXPECTED[18:])

    report = enumerate_crashes(repair, check=check)
    assert report.runs > 20


def test_other_partitions_are_left_alone() -> None:
    topic = Topic.create(SimDisk(), "ticks", SCHEMA, partitions=2)
    for partition in range(2):
        with PartitionWriter(topic, partition, ManualClock()) as writer:
            writer.append(records_of(EXPECTED[:3]))
    files_of(topic)[0].write_bytes(b"")
    give_up(topic, 0, 0, 3)
    assert read_all(topic, partition=1) == EXPECTED[:3]

"""Damage is found, a torn tail is cut, and the two are not taken for each other."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripple.core.codec.compression import Compression
from ripple.storage.log import (
    LogDamagedError,
    LogDivergedError,
    LogError,
    PartitionReader,
    PartitionWriter,
    Stamp,
    Topic,
)
from ripple.storage.log.frame import HEADER_BYTES
from ripple.storage.log.verify import verify
from ripple.testing.sim.disk import SimDisk
from tests.examples import EXAMPLES, THINNED
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


def written(
    disk: SimDisk, appends: int, *, close: bool = True, **options: Any
) -> tuple[Topic, list[tuple[int, list[Any]]]]:
    """A topic with appends of 1, 2, 3, ... records; per append, where it ends and its rows."""
    topic = topic_of(disk, **options)
    writer = PartitionWriter(topic, 0, ManualClock())
    ends: list[tuple[int, list[Any]]] = []
    for number in range(appends):
        rows = rows_of(10 * number, number + 1)
        writer.append(records_of(rows), Stamp(3, 0, number))
        ends.append((writer._active.place.position, rows))
    if close:
        writer.close()
    else:
        writer._file.close()
        writer._locks.release()
    return topic, ends


def flipped(data: bytes, at: int, mask: int) -> bytes:
    return data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :]


def places(begin: int, end: int) -> list[int]:
    """Return the bytes of a frame: of its body, whose bytes are alike, not all (``make wide``)."""
    body = range(begin + HEADER_BYTES, end - 10, 1 if THINNED == 1 else 7)
    return sorted({*range(begin, min(begin + HEADER_BYTES, end)), *body, *range(end - 10, end)})


def check_damage_found(topic: Topic, path: StoredFile, reading: bool = True) -> None:
    before = path.read_bytes()
    with pytest.raises(LogDamagedError, match=path.name):
        verify(topic, 0)
    if reading:
        with pytest.raises(LogError):
            read_all(topic)
    assert path.read_bytes() == before


@pytest.mark.parametrize("compression", [Compression.NONE, Compression.LZ4])
def test_every_changed_byte_of_a_closed_log_is_found(compression: Compression) -> None:
    segment_bytes_max = 2600 if compression is Compression.NONE else 1300
    topic, _ = written(SimDisk(), 4, segment_bytes_max=segment_bytes_max, compression=compression)
    first, last = files_of(topic)
    for path in (first, last):
        whole = path.read_bytes()
        for at in places(0, len(whole)):
            path.write_bytes(flipped(whole, at, 1 << (at % 8)))
            check_damage_found(topic, path, reading=path == first and at % 5 == 0)
        path.write_bytes(whole)
    # A writer refuses as well, and changes nothing.
    whole = last.read_bytes()
    for at in range(0, len(whole), 7):
        path.write_bytes(flipped(whole, at, 0xFF))
        with pytest.raises(LogDamagedError, match="were durable"):
            PartitionWriter(topic, 0, ManualClock())
        assert path.read_bytes() == flipped(whole, at, 0xFF)


def test_every_changed_byte_of_an_index_changes_nothing() -> None:
    topic, ends = written(SimDisk(), 4, segment_bytes_max=1300)
    expected = [row for _, rows in ends for row in rows]
    for path in files_of(topic, ".index"):
        whole = path.read_bytes()
        for at in range(len(whole)):
            path.write_bytes(flipped(whole, at, 1 << (at % 8)))
            assert verify(topic, 0).indexes == (f"ticks/0/{path.name}",)
            assert read_all(topic, 4) == expected[4:]
            with PartitionWriter(topic, 0, ManualClock()) as writer:
                again = writer.append(records_of(ends[3][1]), Stamp(3, 0, 3))
                assert not again.is_new
                writer._failure = "so that the last index stays as it is"
        path.unlink()
        assert verify(topic, 0).indexes == ()
        assert read_all(topic, 4) == expected[4:]
        path.write_bytes(whole)


def test_reader_continues_where_a_torn_frame_is_replaced() -> None:
    """The new frame has the same body, but another header than the one that was half there."""
    topic, ends = written(SimDisk(), 3, close=False, sync_appends=0)
    with PartitionReader(topic, 0) as reader:
        (path,) = files_of(topic)
        path.write_bytes(path.read_bytes()[:-8])
        assert [listed(reader.next()), listed(reader.next())] == [rows for _, rows in ends[:2]]
        assert reader.next() is None
        with PartitionWriter(topic, 0, ManualClock()) as writer:
            for _, rows in (ends[2], ends[0]):
                writer.append(records_of(rows))
                assert listed(reader.next()) == rows


@pytest.mark.parametrize("damage", ["lost", "flipped"])
def test_index_of_a_sealed_segment_is_written_again(damage: str) -> None:
    topic, _ = written(SimDisk(), 6, segment_bytes_max=1300)
    indexes = files_of(topic, ".index")
    whole = [path.read_bytes() for path in indexes]
    for path, data in list(zip(indexes, whole, strict=True))[:-1]:
        path.write_bytes(flipped(data, 40, 1)) if damage == "flipped" else path.unlink()
    with PartitionWriter(topic, 0, ManualClock()):
        assert [path.read_bytes() for path in indexes] == whole


def test_missing_segment_is_damage() -> None:
    topic, _ = written(SimDisk(), 6, segment_bytes_max=1300)
    first, middle, *_ = files_of(topic)
    middle.unlink()
    with pytest.raises(LogDamagedError, match=first.name):
        verify(topic, 0)
    with pytest.raises(LogDamagedError, match=first.name):
        read_all(topic)
    with pytest.raises(LogDamagedError, match=first.name):
        PartitionWriter(topic, 0, ManualClock())


def test_segment_of_another_partition_or_log_is_damage() -> None:
    topic, _ = written(SimDisk(), 6, segment_bytes_max=1300)
    other, _ = written(SimDisk(), 6, segment_bytes_max=1300, sync_appends=0)
    ours, theirs = files_of(topic)[1], files_of(other)[1]
    assert ours.name == theirs.name
    ours.write_bytes(theirs.read_bytes())
    with pytest.raises(LogDamagedError, match="does not continue"):
        verify(topic, 0)


@pytest.mark.parametrize("sync_appends", [1, 0])
def test_log_cut_at_every_byte_loses_only_what_was_torn(sync_appends: int) -> None:
    """After a power failure, which has taken the notes of what was durable with it."""
    topic, ends = written(SimDisk(), 4, close=False, sync_appends=sync_appends)
    (path,) = files_of(topic)
    whole = path.read_bytes()
    # All of the first and the last frame, and some of those between, which are alike.
    first, last = ends[0][0], ends[-2][0]
    between = range(first, last, 1 if EXAMPLES > 1 else 11)
    for length in (*places(0, first), *between, *places(last, len(whole) + 1)):
        path.write_bytes(whole[:length])
        forget_notes(topic)
        left = [rows for end, rows in ends if end <= length]
        end = max((end for end, _ in ends if end <= length), default=0)
        expected = [row for rows in left for row in rows]
        assert read_all(topic) == expected
        writer = PartitionWriter(topic, 0, ManualClock())
        assert path.read_bytes() == whole[:end]
        if length == end:
            assert writer.tail is None
        else:
            assert writer.tail is not None
            assert writer.tail[:5] == (
                f"ticks/0/{path.name}",
                end,
                len(expected),
                length - end,
                0,
            )
        if len(left) < 4:
            # The producer that never got an answer retries, and is stored once.
            rows = ends[len(left)][1]
            assert writer.append(records_of(rows), Stamp(3, 0, len(left))).is_new
            expected += rows
        assert read_all(topic) == expected
        writer._file.close()
        writer._locks.release()


@pytest.mark.parametrize("sync_appends", [1, 2, 0])
def test_every_changed_byte_of_a_killed_log_is_found(sync_appends: int) -> None:
    """Of what was synced, damage; of the rest, a torn tail."""
    topic, ends = written(SimDisk(), 5, close=False, sync_appends=sync_appends)
    (path,) = files_of(topic)
    whole = path.read_bytes()
    durable_end = {1: ends[4][0], 2: ends[3][0], 0: 0}[sync_appends]
    # The first and the last frame, and some of what is between, which is alike.
    frames = [
        places(0, ends[0][0]),
        range(ends[0][0], ends[0][0] + 90),
        range(0, ends[3][0], 9),
        places(ends[3][0], len(whole)),
    ]
    for at in sorted(set().union(*frames)):
        path.write_bytes(flipped(whole, at, 1 << (at % 8)))
        if at < durable_end:
            check_damage_found(topic, path)
            with pytest.raises(LogDamagedError):
                PartitionWriter(topic, 0, ManualClock())
            continue
        tail = verify(topic, 0).tail
        before = [rows for end, rows in ends if end <= at]
        assert tail is not None
        assert tail.position == max((end for end, _ in ends if end <= at), default=0)
        assert tail.frames == len(ends) - len(before) - 1
        assert read_all(topic) == [row for rows in before for row in rows]


@given(st.data())
@settings(max_examples=14 * EXAMPLES // THINNED)
def test_reader_never_returns_what_was_not_written(data: st.DataObject) -> None:
    """Whatever happens to the bytes: a prefix comes back, or an error does."""
    topic, ends = written(
        SimDisk(),
        5,
        close=data.draw(st.booleans()),
        segment_bytes_max=data.draw(st.sampled_from([1300, 1 << 20])),
        sync_appends=data.draw(st.sampled_from([0, 1])),
        compression=data.draw(st.sampled_from(list(Compression))),
    )
    expected = [row for _, rows in ends for row in rows]
    path = data.draw(st.sampled_from([*files_of(topic), *files_of(topic, ".index")]))
    whole = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        if not whole:
            break
        at = data.draw(st.integers(0, len(whole) - 1))
        replacements = {
            "flip": bytes([whole[at] ^ data.draw(st.integers(1, 255))]) + whole[at + 1 :],
            "zero": bytes(100) + whole[at + 100 :],
            "delete": whole[at + 8 :],
            "insert": data.draw(st.binary(max_size=20)) + whole[at:],
            "cut": b"",
            "double": whole[at:] + whole[at:],
        }
        whole[at:] = replacements[data.draw(st.sampled_from(sorted(replacements)))]
    path.write_bytes(whole)
    for start in (0, 3, 11):
        found: list[Any] = []
        try:
            with PartitionReader(topic, 0) as reader:
                for entry in reader.read(start):
                    found += listed(entry)
        except LogError:
            pass
        assert found == expected[start : start + len(found)]


def test_reader_notices_that_its_past_was_replaced() -> None:
    topic, ends = written(SimDisk(), 2, close=False, sync_appends=0)
    (path,) = files_of(topic)
    whole = path.read_bytes()
    with PartitionReader(topic, 0) as reader:
        assert len(list(reader.read())) == 2
        path.write_bytes(whole[: ends[0][0]])
        with pytest.raises(LogDivergedError):
            reader.next()
    path.write_bytes(whole)
    with PartitionReader(topic, 0) as reader:
        assert len(list(reader.read())) == 2
        path.write_bytes(whole[: ends[0][0]])
        with PartitionWriter(topic, 0, ManualClock()) as writer:
            # As long as what was lost, and something after it.
            writer.append(records_of([dict(row, at_ns=1) for row in ends[1][1]]), Stamp(3, 0, 1))
            writer.append(records_of(rows_of(0, 1)))
        with pytest.raises(LogDivergedError, match="do not continue"):
            reader.next()

"""Repair of a partition by giving up lost records, on an operator's request.

Frames of lost records take their offsets, and readers report them as such. The damaged segment is
kept under another name.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from ripple.core.codec.compression import Compression
from ripple.storage.log import frame
from ripple.storage.log.durable import durable_offset
from ripple.storage.log.epochs import segments
from ripple.storage.log.errors import LogDamagedError, LogError
from ripple.storage.log.files import open_segment
from ripple.storage.log.frame import NO_TIME_NS, OFFSET_END, Draft, FrameError, Kind
from ripple.storage.log.owner_locks import OwnerLocks
from ripple.storage.log.recovery import chain_at, frames_behind, whole_frame
from ripple.storage.log.segment import (
    READ_BYTES,
    SEGMENT_SUFFIX,
    FramePosition,
    Frames,
    Segment,
    index_path,
    segments_in,
)
from ripple.storage.log.verify import verify

if TYPE_CHECKING:
    from ripple.storage.log.topic import Topic
    from ripple.world.ports import Disk, File

# Per frame, so that readers get batches of moderate size.
LOST_OFFSETS_MAX = 16_384


class Loss(NamedTuple):
    """The first run of lost records: from ``first_offset``, before ``next_offset``.

    ``segment`` lacks them, from ``place`` on; ``rest`` is the position in it where reading can
    resume, None where it cannot; ``chain`` is the value that the frame after them continues.
    """

    first_offset: int
    next_offset: int
    damage: LogDamagedError
    segment: Segment
    place: FramePosition
    rest: int | None
    chain: int


def find_loss(topic: Topic, partition: int) -> Loss | None:
    """Return the first loss that can be given up, None if nothing is lost.

    Raises LogDamagedError for damage of another kind: valid frames that belong elsewhere, after
    which the records would be foreign ones.
    """
    try:
        verify(topic, partition)
    except LogDamagedError as damage:
        return _loss(topic, partition, damage)
    return None


def give_up(topic: Topic, partition: int, first_offset: int, next_offset: int) -> str | None:
    """Give up the lost records from ``first_offset`` to before ``next_offset``.

    Return the path of the damaged segment's copy, None if there was none. Raises LogError unless
    exactly these records are lost, DiskLockedError when a writer is active, and OSError.
    """
    folder = topic.folder(partition)
    topic.disk.make_folder(folder)
    locks = OwnerLocks(topic.disk, folder, "a repair")
    try:
        locks.take_all()
        loss = find_loss(topic, partition)
        if loss is None:
            raise LogError(f"{folder}: nothing is lost")
        if (loss.first_offset, loss.next_offset) != (first_offset, next_offset):
            raise LogError(
                f"{folder}: the lost offsets are {loss.first_offset}-{loss.next_offset - 1}, "
                f"not {first_offset}-{next_offset - 1}"
            )
        return _replace(topic.disk, folder, loss, _lost_frames(loss, partition))
    finally:
        locks.release()


def _loss(topic: Topic, partition: int, damage: LogDamagedError) -> Loss:
    folder = topic.folder(partition)
    present = segments(topic.disk, folder)
    named = next(iter(segments_in([PurePath(damage.file).name], SEGMENT_SUFFIX)), None)
    at = next((at for at, one in enumerate(present) if named and one[:2] == named[:2]), -1)
    following = present[at + 1 :]
    next_offset = following[0].first_offset if following else durable_offset(topic, partition)
    chain = _first_chain(topic, partition, following[0]) if following else 0
    if at < 0:
        if named is None or named.first_offset or named.epoch:
            raise damage
        place = FramePosition(0, 0, chain_at(0))
        return Loss(0, next_offset, damage, named, place, None, chain)
    segment = present[at]
    if segment.end is not None and not following:
        raise damage
    before = chain_at(segment.first_offset)
    if at > 0:
        before = _end(topic, partition, present[at - 1]).chain
    place = _end(topic, partition, segment, before, damage.position)
    rest = None
    with closing(open_segment(topic.disk, folder, segment)) as file:
        if whole_frame(file, place.position, file.size()) is not None:
            raise damage
        end = following[0].first_offset if following else OFFSET_END
        for position, header in frames_behind(file, place.position, file.size()):
            is_behind = place.offset < header.first_offset < end
            if header.partition == partition and is_behind:
                rest, next_offset, chain = position, header.first_offset, header.chain
                break
    if next_offset <= place.offset:
        raise damage
    return Loss(place.offset, next_offset, damage, segment, place, rest, chain)


def _end(
    topic: Topic,
    partition: int,
    segment: Segment,
    chain: int | None = None,
    position: int | None = None,
) -> FramePosition:
    """Return the place at ``position`` in a segment, or at the end of its valid frames."""
    with closing(open_segment(topic.disk, topic.folder(partition), segment)) as file:
        frames = _frames(topic, partition, file, FramePosition(0, segment.first_offset, chain))
        frames.end = segment.end
        try:
            while frames.place.position != position and frames.next_header() is not None:
                pass
        except FrameError:
            pass
        return frames.place


def _first_chain(topic: Topic, partition: int, segment: Segment) -> int:
    """Return the chain value of a segment's first frame, 0 if unknown."""
    with closing(open_segment(topic.disk, topic.folder(partition), segment)) as file:
        place = FramePosition(0, segment.first_offset, None)
        try:
            header = _frames(topic, partition, file, place).next_header()
        except FrameError:
            return 0
        return header.chain if header is not None else 0


def _frames(topic: Topic, partition: int, file: File, place: FramePosition) -> Frames:
    return Frames(file, partition, place, topic.settings.batch_bytes_max)


def _lost_frames(loss: Loss, partition: int) -> bytes:
    """Return frames of lost records that continue the chain on both sides."""
    frames = []
    chain = loss.place.chain or 0
    for offset in range(loss.first_offset, loss.next_offset, LOST_OFFSETS_MAX):
        count = min(LOST_OFFSETS_MAX, loss.next_offset - offset)
        after = loss.chain if offset + count == loss.next_offset else 0
        draft = Draft(
            Kind.LOST, count, b"", Compression.NONE, 0, NO_TIME_NS, NO_TIME_NS, sequence=after
        )
        frames.append(
            frame.dumps(
                draft, first_offset=offset, partition=partition, durable_offset=offset, chain=chain
            )
        )
        chain = after
    return b"".join(frames)


def _replace(disk: Disk, folder: str, loss: Loss, lost: bytes) -> str | None:
    path = loss.segment.path(folder)
    was_there = disk.exists(path)
    temporary = f"{path}.tmp"
    with closing(disk.open(temporary, create=True)) as new:
        new.truncate(0)
        if was_there:
            _copy(disk, path, new, 0, loss.place.position)
        new.append(lost)
        if loss.rest is not None:
            _copy(disk, path, new, loss.rest, None)
        new.sync()
    kept = None
    if was_there:
        number = 1
        while not disk.link_absent(path, kept := f"{path}.damaged-{number}"):
            number += 1
    index = index_path(folder, loss.segment.first_offset, loss.segment.epoch)
    if disk.exists(index):
        disk.remove(index)
    disk.rename(temporary, path)
    disk.sync_folder(folder)
    return kept


def _copy(disk: Disk, path: str, new: File, start: int, end: int | None) -> None:
    with closing(disk.open_to_read(path)) as old:
        end = old.size() if end is None else end
        for at in range(start, end, READ_BYTES):
            new.append(old.read(at, min(READ_BYTES, end - at)))

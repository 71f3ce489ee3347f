"""How far a partition is durable, kept beside it: so that what is missing is known to be missing.

Frames, segments and indexes say it too, as long as they are there. So ``TOPIC/PARTITION.durable``
gets a note after every sync; the last sound one counts. A note is not synced before a segment is
sealed or the writer closed: a killed process leaves it in the system's memory, a power failure may
take it. So the file may say less than is durable, and never more. A note is 16 bytes,
little-endian: magic "RLDU", the offset below which all is durable, CRC-32C of that.
"""

from __future__ import annotations

import re
import struct
from contextlib import closing, suppress
from typing import TYPE_CHECKING

from ripple.core.codec.crc import crc32c
from ripple.storage.log import index
from ripple.storage.log.epochs import Listing
from ripple.storage.log.files import hint_in
from ripple.world.replacing import replace

if TYPE_CHECKING:
    from ripple.storage.log.topic import Topic
    from ripple.world.ports import Disk

MAGIC = b"RLDU"
NOTE_BYTES = 16
# When there is that much of them, the notes begin anew.
NOTES_BYTES_MAX = 256 * NOTE_BYTES

_NOTE = struct.Struct("<4sq")
_CRC = struct.Struct("<I")


def durable_offset(topic: Topic, partition: int, listing: Listing | None = None) -> int:
    """Return an offset below which all records are known to be durable, 0 if nothing is known.

    It is asked of what lies beside the segments: the seal that began the epoch in force, its
    owner's notes, and the indexes of its last segment and of those that are gone. Whoever looks at
    the segments afterwards finds at least that much, or the log is damaged: no writer ever takes it
    back. listing: of the partition's folder, where somebody keeps one.
    """
    folder = topic.folder(partition)
    listed = (listing or Listing(topic.disk, folder)).now()
    epoch, begin = listed.epochs.begins[-1]
    # Without a segment nobody can tell who the last owner was: none of their notes is ahead of it.
    owners = [epoch] if listed.segments else [epoch, *_owners_with_notes(topic, partition)]
    noted = max(_read(topic.disk, notes_path(topic, partition, one)) for one in owners)
    last = max(
        (one.first_offset for one in listed.segments[-1:] if one.epoch == epoch), default=begin
    )
    indexed = [
        max(first, index.end_of(topic.disk, folder, first, epoch))
        for first in listed.indexes
        if first >= last
    ]
    return max([begin, noted, *indexed])


def notes_path(topic: Topic, partition: int, epoch: int = 0) -> str:
    """Return the path of an owner's notes: not in the partition's folder, so as to outlast it."""
    owner = f"{partition}-{epoch:010}" if epoch else f"{partition}"
    return f"{topic.path}/{owner}.durable"


def forget_notes(topic: Topic, partition: int, epoch: int) -> None:
    """Remove the notes of owners before this one, which nobody asks for once it is in force."""
    for before in _owners_with_notes(topic, partition):
        if before < epoch:
            with suppress(FileNotFoundError):
                topic.disk.remove(notes_path(topic, partition, before))


def _owners_with_notes(topic: Topic, partition: int) -> list[int]:
    owners = re.compile(rf"{partition}(?:-([0-9]{{10}}))?\.durable")
    found = map(owners.fullmatch, topic.disk.list(topic.path))
    return [int(one[1] or 0) for one in found if one is not None]


class DurableNotes:
    """The notes of the one writer of a partition.

    They only find what is missing, so that nothing fails for them: one that cannot be written is
    left out, and the next one takes its place.
    """

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self._noted = _read(disk, path)
        self._is_kept = False

    def note(self, offset: int) -> None:
        """Note what is durable, without waiting for the disk."""
        if offset == self._noted:
            return
        with suppress(OSError):
            # A process has more partitions than it may have files, so none is kept open for this.
            with closing(self._disk.open(self._path, create=True)) as file:
                size = file.size()
                is_whole = size < NOTES_BYTES_MAX and size % NOTE_BYTES == 0
                if is_whole:
                    file.append(_dumps(offset))
                    self._is_kept = False
            if not is_whole:
                self._begin(offset)
            self._noted = offset

    def keep(self) -> None:
        """Let the last note survive a power failure."""
        if self._noted and not self._is_kept:
            with suppress(OSError):
                self._begin(self._noted)

    def _begin(self, offset: int) -> None:
        replace(self._disk, self._path, _dumps(offset))
        self._is_kept = True


def _dumps(offset: int) -> bytes:
    note = _NOTE.pack(MAGIC, offset)
    return note + _CRC.pack(crc32c(note))


def _read(disk: Disk, path: str) -> int:
    """Return the last sound note, 0 if there is none."""
    data = hint_in(disk, path, length_max=NOTES_BYTES_MAX + NOTE_BYTES) or b""
    for at in range(len(data) // NOTE_BYTES * NOTE_BYTES - NOTE_BYTES, -1, -NOTE_BYTES):
        magic, offset = _NOTE.unpack_from(data, at)
        checksum = _CRC.unpack_from(data, at + _NOTE.size)
        if magic == MAGIC and checksum == (crc32c(data[at : at + _NOTE.size]),):
            return int(offset)
    return 0

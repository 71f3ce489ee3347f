"""The durable offset of a partition, noted outside it, so that lost records are detected.

Frames, segments and indexes hold it too, but may be lost themselves. So ``TOPIC/PARTITION.durable``
gets a note after every sync; the last valid one counts. A note is synced only when a segment is
sealed or the writer closed: it survives a killed process, but not always a power failure. So the
file may state too little, never too much. A note is 16 bytes, little-endian: magic "RLDU", the
durable offset, CRC-32C of that.
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
# Beyond this size the file of notes begins anew.
NOTES_BYTES_MAX = 256 * NOTE_BYTES

_NOTE = struct.Struct("<4sq")
_CRC = struct.Struct("<I")


def durable_offset(topic: Topic, partition: int, listing: Listing | None = None) -> int:
    """Return an offset below which all records are known to be durable, 0 if nothing is known.

    Its sources are the seal that began the present epoch, its owner's notes, and the indexes of its
    last segment and of removed ones. Segments that are read afterwards reach at least that far, or
    the log is damaged: no writer ever takes it back. listing: a cached listing of the partition's
    folder, if there is one.
    """
    folder = topic.folder(partition)
    listed = (listing or Listing(topic.disk, folder)).now()
    epoch, begin = listed.epochs.begins[-1]
    # Without a segment the last owner is unknown: any owner's notes may count.
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
    """Return the path of an owner's notes, outside the partition's folder, so as to outlast it."""
    owner = f"{partition}-{epoch:010}" if epoch else f"{partition}"
    return f"{topic.path}/{owner}.durable"


def forget_notes(topic: Topic, partition: int, epoch: int) -> None:
    """Remove the notes of earlier owners, which are obsolete once this one is in force."""
    for before in _owners_with_notes(topic, partition):
        if before < epoch:
            with suppress(FileNotFoundError):
                topic.disk.remove(notes_path(topic, partition, before))


def _owners_with_notes(topic: Topic, partition: int) -> list[int]:
    owners = re.compile(rf"{partition}(?:-([0-9]{{10}}))?\.durable")
    found = map(owners.fullmatch, topic.disk.list(topic.path))
    return [int(one[1] or 0) for one in found if one is not None]


class DurableNotes:
    """Writes the notes of one owner of a partition.

    They only serve to detect losses, so they cause no failure: a note that cannot be written is
    skipped, and the next one replaces it.
    """

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        self._noted = _read(disk, path)
        self._is_kept = False

    def note(self, offset: int) -> None:
        """Note the durable offset, without waiting for the disk."""
        if offset == self._noted:
            return
        with suppress(OSError):
            # Not kept open: a process may have more partitions than files.
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
        """Sync the last note."""
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
    """Return the last valid note, 0 if there is none."""
    data = hint_in(disk, path, length_max=NOTES_BYTES_MAX + NOTE_BYTES) or b""
    for at in range(len(data) // NOTE_BYTES * NOTE_BYTES - NOTE_BYTES, -1, -NOTE_BYTES):
        magic, offset = _NOTE.unpack_from(data, at)
        checksum = _CRC.unpack_from(data, at + _NOTE.size)
        if magic == MAGIC and checksum == (crc32c(data[at : at + _NOTE.size]),):
            return int(offset)
    return 0

"""Identity of a log's prefix, stored in a cut, to detect that a log was replaced.

Each header's checksum covers that of the header before it, so the last one identifies all records
read so far.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.storage.log.errors import LogChangedError, OffsetOutOfRangeError
from ripple.storage.log.frame import Kind

if TYPE_CHECKING:
    from ripple.storage.log.frame import Header
    from ripple.storage.log.reader import PartitionReader


def identity_at(reader: PartitionReader, offset: int) -> str:
    """Return the identity of the records before ``offset``.

    "" for offset 0, and where retention has removed all of them. Moves the reader. Raises
    OffsetOutOfRangeError.
    """
    if offset <= reader.range(whole=True)[0]:
        return ""
    return identity_of(reader.frame_with(offset - 1).header)


def identity_of(header: Header) -> str:
    """Return the identity of a log at any offset after the first one of this frame."""
    return f"{header.first_offset}:{header.crc:08x}"


def check_identity(reader: PartitionReader, offset: int, identity: str) -> None:
    """Raise unless the records before ``offset`` have this ``identity``.

    The check is skipped where retention has removed all of them, or the last ones were lost and
    given up. Moves the reader. Raises OffsetOutOfRangeError when the record at ``offset`` itself
    was removed, LogChangedError when the log is shorter or another one.
    """
    first_offset, next_offset = reader.range(whole=True)
    name = f"{reader.topic.path}/{reader.partition}"
    if offset > next_offset:
        raise LogChangedError(
            f"{name} ends at offset {next_offset}, but records up to {offset} were read from it: "
            "it lost unsynced records, or was created anew. Restore it, or begin again without "
            "the state that was computed from it"
        )
    if offset < first_offset:
        raise OffsetOutOfRangeError(name, offset, first_offset, next_offset)
    if not identity or offset == first_offset:
        return
    header = reader.frame_with(offset - 1).header
    found = identity_of(header)
    if found != identity and header.kind != Kind.LOST:
        raise LogChangedError(
            f"{name} holds other records before offset {offset} than those that were read "
            f"(frame {found}, not {identity}): it was created anew, or lost records and got "
            "others. Restore it, or begin again without the state that was computed from it"
        )

"""Marks a segment whose sync failed: the system may show bytes that it will never write.

A failed sync leaves the bytes in the system's memory, marked as written. The process that saw it
fail ends; the next one finds a complete segment, syncs it with success, and counts bytes as durable
that a power cut then takes. So a failed sync leaves a marker file. It need not be durable: a power
cut takes the unwritten bytes with it. The next writer that finds the marker rewrites the segment.

Method: "Can Applications Recover from fsync Failures?", Rebello et al., USENIX ATC 2020.
"""

from __future__ import annotations

from contextlib import closing, suppress
from typing import TYPE_CHECKING

from ripple.storage.log.segment import READ_BYTES, segment_path
from ripple.world.replacing import open_anew

if TYPE_CHECKING:
    from ripple.world.ports import Disk


def distrust(disk: Disk, folder: str) -> None:
    """Note that the last segment in ``folder`` may not be on disk, even after a sync."""
    with suppress(OSError):
        disk.open(_note(folder), create=True).close()


def rewrite_distrusted(disk: Disk, folder: str, first_offset: int) -> None:
    """Rewrite the segment if a sync of it has failed; raises OSError with nothing changed.

    Readers that have the old file open do not see the new one grow: they reopen it.
    """
    if not disk.exists(_note(folder)):
        return
    path = segment_path(folder, first_offset)
    temporary = f"{path}.tmp"
    with (
        closing(disk.open_to_read(path)) as old,
        closing(open_anew(disk, temporary, like=path)) as new,
    ):
        for at in range(0, old.size(), READ_BYTES):
            new.append(old.read(at, READ_BYTES))
        new.sync()
    disk.rename(temporary, path)
    disk.sync_folder(folder)
    disk.remove(_note(folder))


def _note(folder: str) -> str:
    return f"{folder}/distrusted"

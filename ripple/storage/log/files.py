"""Reading of a log's files: hints, which may be missing, and segments, which may not.

See docs/recovery.md, One object, or the store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.core.errors import LimitError
from ripple.storage.log.errors import LogDamagedError
from ripple.world.errors import is_of_one_file

if TYPE_CHECKING:
    from ripple.storage.log.segment import Segment
    from ripple.world.ports import Disk, File


def hint_in(disk: Disk, path: str, *, length_max: int) -> bytes | None:
    """Return an optional file; None if it is missing or unreadable."""
    try:
        return disk.read_bytes(path, length_max=length_max)
    except LimitError:
        return None
    except OSError as error:
        if isinstance(error, FileNotFoundError) or is_of_one_file(error):
            return None
        raise


def open_segment(disk: Disk, folder: str, segment: Segment) -> File:
    """Open a segment to read it. Raises LogDamagedError where a folder stands; OSError."""
    path = segment.path(folder)
    try:
        return disk.open_to_read(path)
    except IsADirectoryError:
        why = "a folder stands in its place: move it away"
        raise LogDamagedError(path, 0, segment.first_offset, why) from None

"""A few lines that a partition's next owner reads: on a disk, a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ripple.checkpoint.checkpoints import prefix_of
from ripple.world.paths import folder_of
from ripple.world.replacing import replace

if TYPE_CHECKING:
    from ripple.world.ports import Disk, File

READ_BYTES_MAX = 64 << 20


class Notes(Protocol):
    """A short file; one owner at a time. ``replace`` comes before ``append``."""

    place: str
    """Where it is, for people."""

    def read(self) -> bytes | None:
        """Return all of it, None if there is none. Raises LimitError and OSError."""
        ...

    def replace(self, data: bytes) -> None:
        """Let it be ``data``, durably where that takes no network. Raises OSError."""
        ...

    def append(self, data: bytes) -> None:
        """Add ``data``: what a dead process wrote is there. Raises OSError."""
        ...

    def truncate(self, size: int) -> None:
        """Cut it to ``size`` bytes."""
        ...

    def close(self) -> None:
        """Release it as it is; closing twice is allowed."""
        ...


def in_flight_path(pipeline: str, partition: int = 0) -> str:
    """Return the file on the disk of the checkpoints, beside the dead letters."""
    return f"{prefix_of(pipeline, partition)}in-flight.jsonl"


class NoteFile:
    """A file of a disk; each append is one write, without a sync."""

    def __init__(self, disk: Disk, path: str) -> None:
        """Touch nothing yet."""
        self._disk = disk
        self._path = path
        self._file: File | None = None
        self.place = f"{path} in the folder of the checkpoints"

    def read(self) -> bytes | None:
        """Return all of it."""
        if not self._disk.exists(self._path):
            return None
        return self._disk.read_bytes(self._path, length_max=READ_BYTES_MAX)

    def replace(self, data: bytes) -> None:
        """Let it be ``data``; a crash leaves what was or what is."""
        self.close()
        self._disk.make_folder(folder_of(self._path))
        replace(self._disk, self._path, data)
        self._file = self._disk.open(self._path)

    def append(self, data: bytes) -> None:
        """Add ``data``."""
        self._opened().append(data)

    def truncate(self, size: int) -> None:
        """Cut it."""
        self._opened().truncate(size)

    def close(self) -> None:
        """Release the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _opened(self) -> File:
        if self._file is None:
            raise ValueError(f"{self._path} is closed")
        return self._file

"""A few lines that a partition's next owner reads: in a file, or in a journal of the store."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from ripple.core.errors import InputError, LimitError
from ripple.storage.checkpoint.checkpoints import prefix_of
from ripple.storage.fenced import Journal
from ripple.world.paths import folder_of
from ripple.world.ports import all_guards
from ripple.world.replacing import replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ripple.storage.fenced import Added
    from ripple.world.ports import Disk, File, Guards, ObjectStore

READ_BYTES_MAX = 64 << 20


class NotesDamagedError(InputError):
    """The notes differ from the written ones."""


class Notes(Protocol):
    """A short file; one owner at a time. ``replace`` comes before ``append``."""

    place: str
    """Its path, for people."""

    def read(self) -> bytes | None:
        """Return all of it, None if there is none. Raises NotesDamagedError and OSError."""
        ...

    def replace(self, data: bytes) -> None:
        """Let it be ``data``, durably where that takes no network. Raises OSError."""
        ...

    def append(self, data: bytes) -> None:
        """Add ``data``: a dead process's notes stay. Raises OSError."""
        ...

    def truncate(self, size: int) -> None:
        """Cut it to ``size`` bytes."""
        ...

    def set_aside(self) -> None:
        """Keep it as it is under another name: it is damaged, and begins anew."""
        ...

    def close(self) -> None:
        """Release it as it is; closing twice is allowed."""
        ...


def in_flight_path(pipeline: str, partition: int = 0) -> str:
    """Return the file of notes on the disk of the checkpoints."""
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
        try:
            return self._disk.read_bytes(self._path, length_max=READ_BYTES_MAX)
        except LimitError as error:
            raise NotesDamagedError(str(error)) from error

    def replace(self, data: bytes) -> None:
        """Let it be ``data``; a crash leaves the old or the new contents."""
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

    def set_aside(self) -> None:
        """Rename it."""
        with suppress(OSError):
            self._disk.rename(self._path, f"{self._path}.damaged")

    def close(self) -> None:
        """Release the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _opened(self) -> File:
        if self._file is None:
            raise ValueError(f"{self._path} is closed")
        return self._file


class StoreNotes:
    """The lines in a journal, all of them in memory; pending lines are not in the store yet."""

    def __init__(self, there: Sequence[Added] = (), journal: Journal | None = None) -> None:
        self.place = "" if journal is None else f"{journal.prefix} in the store"
        self._damage = () if journal is None else journal.damage
        self._data = b"".join(one.data for one in there)
        self._pending = b""
        self._is_replaced = False
        self._is_there = bool(self._data)

    def read(self) -> bytes | None:
        """Return all of it."""
        if self._damage:
            raise NotesDamagedError("; ".join(self._damage))
        return self._data if self._is_there else None

    def replace(self, data: bytes) -> None:
        """Replace all by ``data``; a crash leaves the old or the new lines."""
        self._data, self._pending, self._is_replaced = data, b"", True

    def append(self, data: bytes) -> None:
        """Add ``data``, with the next flush."""
        self._data += data
        self._pending += data

    def truncate(self, size: int) -> None:
        """Cut it, with the next flush."""
        self.replace(self._data[:size])

    def set_aside(self) -> None:
        """Do nothing: the objects stay for now, before a whole one."""

    def close(self) -> None:
        """Do nothing: all is in memory."""

    async def flush(self, journal: Journal) -> None:
        """Put the pending lines. Raises FencedError and StoreError."""
        if self._is_replaced or self._pending:
            data = self._data if self._is_replaced else self._pending
            await journal.add(data, is_whole=self._is_replaced)
            self._is_replaced, self._pending = False, b""


def notes_journal_of(
    store: ObjectStore, pipeline: str, partition: int, *, guards: Guards = all_guards
) -> Journal:
    """Return the journal of a partition's notes."""
    return Journal(store, f"{prefix_of(pipeline, partition)}notes/", guards=guards)


async def notes_in(store: ObjectStore, pipeline: str, partition: int) -> bytes | None:
    """Return the notes of a partition's owner; None where there are none, or they are damaged."""
    journal = notes_journal_of(store, pipeline, partition)
    there = await journal.read()
    return b"".join(one.data for one in there) or None if not journal.damage else None

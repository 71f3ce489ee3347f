"""The order of a durable run's files: recorded before a record of them counts."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ripple.connectors.files.version import Version

if TYPE_CHECKING:
    from collections.abc import Sequence


class TakenFile(NamedTuple):
    """A taken file. first: the offset of its first record.

    One without a path says where the records of the file before it end: that file may be removed.
    """

    first: int
    path: str
    size_bytes: int
    stamp: str

    @property
    def version(self) -> Version:
        """Its version then."""
        return Version(self.size_bytes, self.stamp)


class FileRecord(Protocol):
    """The files taken so far, by rising offsets. One caller at a time.

    Invariants: a file in ``taken`` is durable; one without a path is the last one.
    """

    @property
    def taken(self) -> Sequence[TakenFile]:
        """The files, in the order in which they were taken."""
        ...

    async def finish(self) -> None:
        """Complete a cancelled ``add`` of unknown outcome."""
        ...

    async def add(self, file: TakenFile) -> None:
        """Record the next file."""
        ...

    async def keep(self, taken: Sequence[TakenFile]) -> None:
        """Forget all files but these."""
        ...


class PassingRecord:
    """A file log in memory, for runs that never resume."""

    def __init__(self) -> None:
        self._taken: list[TakenFile] = []

    @property
    def taken(self) -> Sequence[TakenFile]:
        """The files, in the order in which they were taken."""
        return self._taken

    async def finish(self) -> None:
        """Do nothing: every ``add`` was completed."""

    async def add(self, file: TakenFile) -> None:
        """Hold the next file."""
        append(self._taken, file)

    async def keep(self, taken: Sequence[TakenFile]) -> None:
        """Forget all files but these."""
        self._taken = [*taken]


def append(taken: list[TakenFile], file: TakenFile) -> None:
    """Add a file, in the place of an end: its own offset says the same."""
    if taken and not taken[-1].path:
        taken.pop()
    taken.append(file)


def number_at(taken: Sequence[TakenFile], offset: int) -> int:
    """Return the index of the file with an offset, -1 for none; the last one may end before."""
    return bisect_right(taken, offset, key=lambda one: one.first) - 1

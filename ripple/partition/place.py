"""Where a partition keeps what its next owner must know of: its letters, and what is in flight."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ripple.partition.letter_box import LetterBox, LetterTopic, letters_path
from ripple.partition.notes import NoteFile, Notes, in_flight_path
from ripple.world.ports import all_guards

if TYPE_CHECKING:
    from ripple.world.ports import Clock, Disk, Guards


class Place(Protocol):
    """A place that moves with the partition: whoever owns it next finds what was left there.

    Letters and notes are given without waiting. What takes a network is done by ``flush``, which
    comes before anything that relies on it: before records are applied that a note names, and
    before a cut is committed whose letters were written and synced.
    """

    async def open(self, epoch: int) -> None:
        """Become the owner, before ``letters`` and ``notes``.

        Raises FencedError if somebody has become it with this epoch or a higher one.
        """
        ...

    def letters(self) -> LetterBox:
        """Return the letters, once. Raises OSError and what is raised for damage."""
        ...

    def notes(self) -> Notes:
        """Return the notes of what is in flight, once."""
        ...

    async def flush(self) -> None:
        """Let all notes, and the letters up to the last ``sync``, be there for the next owner.

        Raises FencedError when another owner has begun, StoreError.
        """
        ...

    async def close(self) -> None:
        """Release the place, with what can still be written; closing twice is allowed."""
        ...


class DiskPlace:
    """The folder of the checkpoints on a disk: the next owner has that disk."""

    def __init__(
        self,
        disk: Disk,
        pipeline: str,
        partition: int = 0,
        *,
        clock: Clock,
        holder: str = "a life",
        guards: Guards = all_guards,
    ) -> None:
        """Touch nothing yet. holder: who has the letters, for people."""
        self._disk = disk
        self._pipeline = pipeline
        self._partition = partition
        self._clock = clock
        self._holder = holder
        self._guards = guards

    async def open(self, epoch: int) -> None:
        """Do nothing: whoever holds the lock of the folder is the owner."""

    def letters(self) -> LetterBox:
        """Open the topic of the letters."""
        path = letters_path(self._pipeline, self._partition)
        return LetterTopic(self._disk, path, self._clock, holder=self._holder, guards=self._guards)

    def notes(self) -> Notes:
        """Return the file of the notes."""
        return NoteFile(self._disk, in_flight_path(self._pipeline, self._partition))

    async def flush(self) -> None:
        """Do nothing: what was written is there."""

    async def close(self) -> None:
        """Do nothing: letters and notes close their files."""

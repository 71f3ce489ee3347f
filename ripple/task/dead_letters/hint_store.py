"""Hints of a partition for its next owner: dead letters, and notes of records in flight.

Both lie with the checkpoints, below ``PIPELINE/PARTITION/`` in their store: dead letters in a
journal (``ripple.storage.fenced``), and so are the notes where the partition moves from machine to
machine. A partition that stays on one disk has its notes in a file there, which costs no put.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ripple.storage.fenced import FencedError
from ripple.task.dead_letters.in_flight import problems_in
from ripple.task.dead_letters.log import lost
from ripple.task.dead_letters.notes import StoreNotes, notes_journal_of
from ripple.task.dead_letters.queue import (
    LETTER_BYTES_MAX,
    StoredLetters,
    batches_of,
    journal_of,
    with_letters,
)
from ripple.world.errors import StoreError
from ripple.world.ports import all_guards

if TYPE_CHECKING:
    from ripple.storage.checkpoint import Checkpoint
    from ripple.task.dead_letters.notes import NoteFile, Notes
    from ripple.world.ports import Guards, ObjectStore, Random

# Beyond the second number of objects they are merged into one; beyond the first number only if the
# bytes written again are at most so many times the bytes added.
LETTER_OBJECTS_FEW = 64
LETTER_OBJECTS_MAX = 256
AGAIN_TIMES_MAX = 8
JOURNAL_BYTES_MAX = 2 * LETTER_BYTES_MAX


class HintStore:
    """A store of hints that moves with the partition, from owner to owner.

    Dead letters and notes are taken without waiting. The network is used by ``flush``, which comes
    before each step that relies on it: before the records of a note are applied, and before a cut
    is committed with dead letters that were written and synced.

    Damaged or missing hints are lost and end no task: ``letters().damage`` reports them.
    """

    def __init__(
        self,
        store: ObjectStore,
        pipeline: str,
        partition: int = 0,
        *,
        random: Random,
        notes: NoteFile | None = None,
        guards: Guards = all_guards,
    ) -> None:
        """Touch nothing yet. The store should retry failures: see ``RetryingStore``.

        notes: a file for notes; without one they are in the store, and a note costs a put before
        its records are applied, so that batches should take longer than a put.
        """
        self._letter_journal = journal_of(store, pipeline, partition, guards=guards)
        self._note_journal = notes_journal_of(store, pipeline, partition, guards=guards)
        self._random = random
        self._letters = StoredLetters()
        self._file = notes
        self._notes = StoreNotes()
        self._is_open = self._is_to_mend = False

    async def newest_epoch(self) -> int:
        """Return the epoch of the newest owner, 0 for none; nothing is changed. Raises StoreError.

        It may be above that of a manifest that was lost.
        """
        notes = 0 if self._file is not None else await self._note_journal.newest_epoch()
        return max(notes, await self._letter_journal.newest_epoch())

    async def open(self, epoch: int) -> None:
        """Become the owner, before ``letters`` and ``notes``, and read the hints.

        Raises FencedError if another owner has this epoch or a higher one; StoreError.
        """
        journal = self._letter_journal
        self._letters = StoredLetters(await journal.open(epoch, self._random), journal.damage)
        if self._file is None:
            there = await self._note_journal.open(epoch, self._random)
            self._notes = StoreNotes(there, self._note_journal)
        self._is_open = True

    def letters(self) -> StoredLetters:
        """Return the dead letters, once."""
        return self._letters

    def notes(self) -> Notes:
        """Return the notes of records in flight, once."""
        return self._notes if self._file is None else self._file

    def mend(self) -> None:
        """Let the next flush replace all objects by one sound object, if dead letters are damaged.

        Call it once everything is replayed: before, the next owner must see which of the dead
        letters that come again are lost.
        """
        self._letters.sync()
        self._is_to_mend = bool(self._letters.damage)

    async def flush(self) -> None:
        """Make all notes, and dead letters up to the last ``sync``, available to the next owner.

        Raises FencedError when another owner has begun, StoreError.
        """
        letters, journal = self._letters, self._letter_journal
        while (data := letters.next()) is not None:
            await journal.add(data)
            letters.passed()
        await self._notes.flush(self._note_journal)
        if self._is_long or self._is_to_mend:
            await journal.add(letters.whole(), is_whole=True)
            self._is_to_mend = False

    @property
    def _is_long(self) -> bool:
        """Whether one object of dead letters should take the place of all."""
        journal = self._letter_journal
        added_bytes = journal.length_bytes - journal.whole_bytes
        is_cheap = journal.whole_bytes <= AGAIN_TIMES_MAX * added_bytes
        few = LETTER_OBJECTS_FEW if is_cheap else LETTER_OBJECTS_MAX
        return journal.objects > few or journal.length_bytes > JOURNAL_BYTES_MAX

    async def close(self) -> None:
        """Release the store, after a last attempt to write; closing twice is allowed."""
        if self._is_open:
            self._is_open = False
            self._letters.sync()
            with suppress(FencedError, StoreError):
                await self.flush()


async def newest_keeper(store: ObjectStore, pipeline: str) -> int:
    """Return the highest epoch of an owner that has stored hints of a pipeline."""
    known = 0
    for named, partition in await with_letters(store):
        for journal_in in (journal_of, notes_journal_of) if named == pipeline else ():
            known = max(known, await journal_in(store, pipeline, partition).newest_epoch())
    return known


async def problems_of(
    store: ObjectStore,
    pipeline: str,
    partition: int,
    notes: NoteFile | None = None,
    *,
    checkpoint: Checkpoint | None = None,
) -> tuple[str, ...]:
    """Return the damage of a partition's dead letters and notes; nothing is changed.

    notes: the file of notes, where there may be one. checkpoint: the newest, if any, whose dead
    letters must all be there. Raises StoreError.
    """
    letters = journal_of(store, pipeline, partition)
    batches, wrong = batches_of(await letters.read())
    problems = [*letters.damage, *wrong]
    if checkpoint is not None and not problems:
        problems += lost(batches, checkpoint)
    journal = notes_journal_of(store, pipeline, partition)
    for one in (StoreNotes(await journal.read(), journal), notes):
        if one is not None:
            problems += problems_in(one)
    return tuple(problems)

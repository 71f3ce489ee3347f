"""Letters and notes in an object store, for partitions that move from machine to machine.

They are two journals (``ripple.fenced``) under the partition's prefix: ``letters/``, a batch of
rows an object, and ``notes/``, the lines since the object before, or all that is left of them.
Whoever opens it reads all that counts, one object after the other, so letters are put together now
and then, and the oldest are not kept for ever.
"""

from __future__ import annotations

import re
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa

from ripple.checkpoint.checkpoints import prefix_of
from ripple.encoding import arrow
from ripple.encoding.errors import EncodingError
from ripple.fenced import DamagedError, FencedError, Journal
from ripple.partition.letter_box import ARROW
from ripple.partition.letters import APPEND_BYTES_MAX, counting
from ripple.world.errors import StoreError
from ripple.world.ports import all_guards

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ripple.fenced import Added
    from ripple.partition.letter import Letter
    from ripple.world.ports import Guards, ObjectStore, Random

LETTER_BYTES_MAX = 32 << 20  # kept, beyond which the oldest go
# Beyond, one object takes the place of all.
LETTER_OBJECTS_MAX = 256
JOURNAL_BYTES_MAX = 2 * LETTER_BYTES_MAX
PIECE_BYTES = 64 << 10
# So many single pieces become one: a batch of one row weighs some forty times the row.
PIECES_LOOSE_MAX = 64
_LETTERS = re.compile(r"([^/]+)/(\d{5,})/letters/")


class StorePlace:
    """The place of a partition under ``PIPELINE/PARTITION/`` in a store.

    A note costs a put before its records are applied, so batches should take longer than a put.
    """

    def __init__(
        self,
        store: ObjectStore,
        pipeline: str,
        partition: int = 0,
        *,
        random: Random,
        guards: Guards = all_guards,
    ) -> None:
        """Touch nothing yet. The store should repeat what fails: see ``RetryingStore``."""
        self._prefix = prefix_of(pipeline, partition)
        self._letter_journal = Journal(store, f"{self._prefix}letters/", guards=guards)
        self._note_journal = Journal(store, f"{self._prefix}notes/", guards=guards)
        self._random = random
        self._letters = _Letters((), self._prefix)
        self._notes = _Notes((), self._prefix)
        self._is_open = False

    async def open(self, epoch: int) -> None:
        """Become the owner, and read what is there; also raises DamagedError and StoreError."""
        letters = await self._letter_journal.open(epoch, self._random)
        notes = await self._note_journal.open(epoch, self._random)
        self._letters = _Letters(letters, self._prefix)
        self._notes = _Notes(notes, self._prefix)
        self._is_open = True

    def letters(self) -> _Letters:
        """Return the letters."""
        return self._letters

    def notes(self) -> _Notes:
        """Return the notes."""
        return self._notes

    async def flush(self) -> None:
        """Put what is not there yet: letters first, up to the last sync."""
        while count := self._letters.next_count():
            rows = pa.concat_batches(self._letters.synced[:count])
            await self._letter_journal.add(arrow.dumps(rows).to_pybytes())
            del self._letters.synced[:count]
        notes = self._notes
        if notes.is_replaced or notes.pending:
            data = notes.data if notes.is_replaced else notes.pending
            await self._note_journal.add(data, is_whole=notes.is_replaced)
            notes.is_replaced, notes.pending = False, b""
        journal = self._letter_journal
        if journal.objects > LETTER_OBJECTS_MAX or journal.length_bytes > JOURNAL_BYTES_MAX:
            await journal.add(self._letters.whole(), is_whole=True)

    async def close(self) -> None:
        """Put what can be put; who has lost the partition, or the store, leaves it."""
        if self._is_open:
            self._is_open = False
            with suppress(FencedError, StoreError):
                await self.flush()


class _Letters:
    """Rows of letters: those that are kept, those that wait for a sync, and for a flush.

    Invariant: ``_loose`` has fewer than ``PIECES_LOOSE_MAX`` pieces, newer than all of ``_kept``.
    """

    def __init__(self, there: Iterable[Added], prefix: str) -> None:
        self._kept: deque[pa.RecordBatch] = deque()
        self._loose: list[pa.RecordBatch] = []
        self._kept_bytes = self._loose_bytes = 0
        for rows in _batches(there, prefix):
            # What was put together goes piece by piece, too.
            step = max(1, len(rows) * PIECE_BYTES // max(1, rows.nbytes))
            for at in range(0, len(rows), step):
                self._keep(rows.slice(at, step))
        self._waiting: list[pa.RecordBatch] = []
        self.synced: list[pa.RecordBatch] = []

    def batches(self) -> Iterator[pa.RecordBatch]:
        yield from self._kept
        yield from self._loose

    def append(self, rows: pa.RecordBatch) -> None:
        self._waiting.append(rows)

    def sync(self) -> None:
        self.synced += self._waiting
        for rows in self._waiting:
            self._keep(rows)
        self._waiting.clear()

    def next_count(self) -> int:
        """Return how many of ``synced`` fit into the next object of the journal; 0 for none."""
        length_bytes = 0
        for count, rows in enumerate(self.synced):
            length_bytes += rows.nbytes
            if count and length_bytes > APPEND_BYTES_MAX:
                return count
        return len(self.synced)

    def whole(self) -> bytes:
        """Return all that is kept as one object, once what was synced is there."""
        kept = [*self.batches()]
        return arrow.dumps(pa.concat_batches(kept)).to_pybytes() if kept else b""

    def _keep(self, rows: pa.RecordBatch) -> None:
        self._loose.append(rows)
        self._loose_bytes += rows.nbytes
        if len(self._loose) >= PIECES_LOOSE_MAX or self._loose_bytes >= PIECE_BYTES:
            merged = pa.concat_batches(self._loose)
            self._loose.clear()
            self._loose_bytes = 0
            self._kept.append(merged)
            self._kept_bytes += merged.nbytes
        while self._kept_bytes + self._loose_bytes > LETTER_BYTES_MAX and len(self._kept) > 1:
            self._kept_bytes -= self._kept.popleft().nbytes

    def close(self) -> None:
        self.sync()


class _Notes:
    """The lines, all of them in memory; what is ``pending`` is not in the store yet."""

    def __init__(self, there: Iterable[Added], prefix: str) -> None:
        there = list(there)
        self.place = f"{prefix}notes/ in the store"
        self.data = b"".join(one.data for one in there)
        self.pending = b""
        self.is_replaced = False
        self._is_there = bool(self.data)

    def read(self) -> bytes | None:
        return self.data if self._is_there else None

    def replace(self, data: bytes) -> None:
        self.data, self.pending, self.is_replaced = data, b"", True

    def append(self, data: bytes) -> None:
        self.data += data
        self.pending += data

    def truncate(self, size: int) -> None:
        self.replace(self.data[:size])

    def close(self) -> None:
        pass


async def notes_in(store: ObjectStore, pipeline: str, partition: int) -> bytes | None:
    """Return the notes that count, as whoever owns the partition has written them."""
    there = await Journal(store, f"{prefix_of(pipeline, partition)}notes/").read()
    return b"".join(one.data for one in there) or None


async def with_letters(store: ObjectStore) -> list[tuple[str, int]]:
    """Return the pipelines and partitions that have a place for letters in a store, sorted."""
    found = {_LETTERS.match(name) for name in await store.list("")}
    return sorted({(unquote(m[1]), int(m[2])) for m in found if m})


async def letters_in(
    store: ObjectStore, pipeline: str, partition: int = 0, *, superseded: bool = False
) -> list[Letter]:
    """Return the letters that count, as ``read_letters`` does; anybody may, at any time."""
    prefix = prefix_of(pipeline, partition)
    there = await Journal(store, f"{prefix}letters/").read()
    batches = list(_batches(there, prefix))
    return list(counting(lambda: batches, superseded=superseded))


def _batches(there: Iterable[Added], prefix: str) -> Iterator[pa.RecordBatch]:
    for one in there:
        if one.data:
            try:
                yield arrow.loads(one.data, ARROW)
            except EncodingError as error:
                raise DamagedError(
                    f"{prefix}letters/ holds what are no letters: {error}"
                ) from error

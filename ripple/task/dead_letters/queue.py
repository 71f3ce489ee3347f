"""The dead letters of a partition as a journal in the store of its checkpoints.

Its objects are batches of rows. Opening it reads all valid rows, one object after the other, so
objects are merged now and then, and the oldest dead letters are deleted.
"""

from __future__ import annotations

import re
from collections import defaultdict, deque
from typing import TYPE_CHECKING
from urllib.parse import unquote

import pyarrow as pa

from ripple.connectors.letter import SCHEMA
from ripple.core.codec import arrow
from ripple.core.codec.errors import EncodingError
from ripple.model.schema.arrow import to_arrow
from ripple.storage.checkpoint.checkpoints import prefix_of
from ripple.storage.fenced import Journal
from ripple.world.ports import all_guards

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from ripple.storage.fenced import Added
    from ripple.world.ports import Guards, ObjectStore

LETTER_BYTES_MAX = 32 << 20  # kept, beyond which the oldest go
# Of one batch of dead letters; each is less than half as long, with the text of its record.
APPEND_BYTES_MAX = 4 << 20
PIECE_BYTES = 64 << 10
# So many single pieces become one: a batch of one row weighs some forty times the row.
PIECES_LOOSE_MAX = 64
ARROW = to_arrow(SCHEMA)
_JOURNAL = re.compile(r"([^/]+)/(\d{5,})/([a-z]+)/")


def journal_of(
    store: ObjectStore, pipeline: str, partition: int, *, guards: Guards = all_guards
) -> Journal:
    """Return the journal of a partition's dead letters."""
    return Journal(store, f"{prefix_of(pipeline, partition)}letters/", guards=guards)


async def with_letters(store: ObjectStore) -> list[tuple[str, int]]:
    """Return the pipelines and partitions with a journal of dead letters in a store, sorted."""
    return sorted((await with_journals(store))["letters"])


async def with_journals(store: ObjectStore) -> Mapping[str, set[tuple[str, int]]]:
    """Return the pipelines and partitions with a journal, by its folder, "letters" or "answers"."""
    found: defaultdict[str, set[tuple[str, int]]] = defaultdict(set)
    for name in await store.list(""):
        if match := _JOURNAL.match(name):
            found[match[3]].add((unquote(match[1]), int(match[2])))
    return found


def batches_of(there: Iterable[Added]) -> tuple[list[pa.RecordBatch], list[str]]:
    """Return the batches in objects of the journal, and the damage of objects that have none."""
    found, damage = [], []
    for one in there:
        if one.data:
            try:
                found.append(arrow.loads(one.data, ARROW))
            except EncodingError as error:
                damage.append(f"{len(one.data)} bytes of an owner of epoch {one.epoch}: {error}")
    return found, damage


class StoredLetters:
    """Rows of dead letters: stored ones, and others that wait for a sync or a flush.

    damage: its unreadable parts. Invariant: ``_loose`` has fewer than ``PIECES_LOOSE_MAX`` pieces,
    newer than all of ``_kept``.
    """

    def __init__(self, there: Iterable[Added] = (), damage: Iterable[str] = ()) -> None:
        self._kept: deque[pa.RecordBatch] = deque()
        self._loose: list[pa.RecordBatch] = []
        self._kept_bytes = self._loose_bytes = 0
        found, wrong = batches_of(there)
        self.damage = (*damage, *wrong)
        for rows in found:
            # What was put together goes piece by piece, too.
            step = max(1, len(rows) * PIECE_BYTES // max(1, rows.nbytes))
            for at in range(0, len(rows), step):
                self._keep(rows.slice(at, step))
        self._waiting: list[pa.RecordBatch] = []
        self._synced: list[pa.RecordBatch] = []

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, in order."""
        yield from self._kept
        yield from self._loose

    def append(self, rows: pa.RecordBatch) -> None:
        """Append rows of ``ARROW``."""
        self._waiting.append(rows)

    def sync(self) -> None:
        """Let the next flush of the hint store return only once all rows are durable."""
        self._synced += self._waiting
        for rows in self._waiting:
            self._keep(rows)
        self._waiting.clear()

    def next(self) -> bytes | None:
        """Return the synced rows as the next object of the journal; None if there are none."""
        some = self._synced[: self._next_count()]
        return arrow.dumps(pa.concat_batches(some)).to_pybytes() if some else None

    def passed(self) -> None:
        """Note that the piece from ``next`` is in the store."""
        del self._synced[: self._next_count()]

    def whole(self) -> bytes:
        """Return all rows as one object, once the synced rows are in the store."""
        kept = [*self.batches()]
        return arrow.dumps(pa.concat_batches(kept)).to_pybytes() if kept else b""

    def _next_count(self) -> int:
        length_bytes = 0
        for count, rows in enumerate(self._synced):
            length_bytes += rows.nbytes
            if count and length_bytes > APPEND_BYTES_MAX:
                return count
        return len(self._synced)

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

"""The dead letters of a partition, stored with its checkpoints and before sinks commit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from ripple.connectors.inputs import NO_ORIGINALS
from ripple.connectors.letter import (
    LETTER,
    QUARANTINE,
    REASON_CHARACTERS_MAX,
    START,
    Letter,
    dumps_record,
    from_row,
    to_row,
)
from ripple.core.causes import Causes
from ripple.model.batch import RAW_BYTES_MAX, Rejected
from ripple.storage.checkpoint.origin import ORIGIN
from ripple.task.dead_letters.queue import (
    APPEND_BYTES_MAX,
    ARROW,
    LETTER_BYTES_MAX,
    batches_of,
    journal_of,
)
from ripple.world.ports import all_guards

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ripple.connectors.inputs import Original
    from ripple.model.batch import Batch
    from ripple.storage.checkpoint import Checkpoint
    from ripple.task.dead_letters.queue import StoredLetters
    from ripple.world.ports import Clock, ObjectStore

HELD_BYTES_MAX = 16 << 20  # of dead letters of a replay by another version
_FEW_COLUMNS = ("kind", "input", "offset", "step", "version")


@dataclass(slots=True)
class _Held:
    """The dead letters of one input.

    Letters come in the order of offsets, so ``last_offset``, of the last one, says it all; only
    quarantined records can come late, when one kills the process that was applied before. Where
    something of the box is lost, ``known`` are the offsets that are not.
    """

    last_offset: int = -1
    quarantined: dict[int, str] = field(default_factory=dict)
    known: set[int] | None = None

    def note(self, offset: int, step: str | None, reason: str) -> None:
        if step == QUARANTINE:
            self.quarantined[offset] = reason
            return
        self.last_offset = max(self.last_offset, offset)
        if self.known is not None:
            self.known.add(offset)

    def start_at(self, offset: int) -> None:
        self.last_offset = min(self.last_offset, offset - 1)
        self.quarantined = {at: why for at, why in self.quarantined.items() if at < offset}
        if self.known is not None:
            self.known = {at for at in self.known if at < offset}

    def has(self, offset: int, step: str | None) -> bool:
        if step == QUARANTINE:
            return offset in self.quarantined
        return offset <= self.last_offset and (self.known is None or offset in self.known)


class DeadLetterLog:
    """Keeps each rejected record once, however often a partition is replayed.

    A restarted task reads again from a checkpoint and rejects the same records again; dead
    letters that the box holds already are not written a second time. For this the calls are
    ``begin``, and then ``write`` in the order of offsets; ``sync`` before a cut that includes the
    records is committed anywhere. ``counts``: the dead letters written by this task, by cause.

    Dead letters lost from the box are written again where their records come again.

    Outputs may refuse a changed version of the pipeline in the middle of its replay, and then it
    has rejected nothing: its dead letters are held until the first ``sync``, or ``HELD_BYTES_MAX``.
    """

    def __init__(
        self,
        box: StoredLetters,
        *,
        pipeline: str,
        version: str,
        clock: Clock,
        guards: Callable[[str], bool] = all_guards,
    ) -> None:
        """Take over ``box``, and read it.

        version: the pipeline's topology hash. guards: which safeguards are on, for tests of the
        tests.
        """
        self.counts = Causes()
        self._pipeline = pipeline
        self._version = version
        self._clock = clock
        self._guards = guards
        self._inputs: dict[str, _Held] = {}
        self._written: dict[str, int] = {}
        self._last_version: str | None = None
        self._held: list[pa.RecordBatch] | None = None
        self._held_bytes = 0
        self._box = box
        self._read()
        self.quarantined: Mapping[str, Mapping[int, str]] = MappingProxyType(
            {name: dict(held.quarantined) for name, held in self._inputs.items()}
        )
        """By input and offset, the reasons of quarantined records, from earlier dead letters."""

    def begin(self, cut: Mapping[str, int]) -> None:
        """Set the offset, per input, from which this task reads.

        Dead letters of other versions of the pipeline from there on are not valid any more: this
        version judges those records anew.
        """
        if self._last_version == self._version:
            return
        self._held = []
        if self._last_version is None:
            return
        starts = [
            to_row(self._letter(name, Rejected(offset, None, "", b""), None), START)
            for name, offset in cut.items()
        ]
        if starts:
            self._append(starts)
        for name, offset in cut.items():
            self._input(name).start_at(offset)

    def write(
        self,
        name: str,
        rejected: Iterable[Rejected],
        batch: Batch | None = None,
        originals: Mapping[int, Original] = NO_ORIGINALS,
    ) -> int:
        """Keep the rejected records of input ``name``; return how many of them were new.

        batch: has the whole records, where it has any. originals: by offset, the records in the
        form of their source. All of one batch go into one call, in any order.
        """
        held = self._input(name)
        row_at = _no_row if batch is None else _rows_of(batch)
        new: list[dict[str, Any]] = []
        length_bytes = count = 0
        for bad in sorted(rejected, key=lambda bad: bad.offset):
            if self._guards("letter_once") and held.has(bad.offset, bad.step):
                continue
            self._check_order(name, bad)
            row = row_at(bad.offset) if bad.row is None else bad.row
            record = dumps_record(row, originals.get(bad.offset), bad.file)
            letter = self._letter(name, bad, record)
            letter_bytes = RAW_BYTES_MAX + len(letter.record or b"")
            if new and length_bytes + letter_bytes > APPEND_BYTES_MAX:
                self._append(new)
                new, length_bytes = [], 0
            new.append(to_row(letter))
            length_bytes += letter_bytes
            self.counts.add(letter.cause)
            count += 1
        if new:
            self._append(new)
        return count

    @property
    def damage(self) -> tuple[str, ...]:
        """The damage of dead letters."""
        return self._box.damage

    def sync(self) -> None:
        """Let the next ``HintStore.flush`` return only once all dead letters are durable."""
        self._pass_held()
        self._box.sync()

    def _input(self, name: str) -> _Held:
        if name not in self._inputs:
            self._inputs[name] = _Held(known=set() if self.damage else None)
        return self._inputs[name]

    def _check_order(self, name: str, bad: Rejected) -> None:
        """Raise ValueError: a dead letter out of order would hide another from the next task."""
        if bad.step == QUARANTINE:
            return
        if bad.offset <= self._written.get(name, -1):
            raise ValueError(f"the letter of {name} at {bad.offset} comes after a later one")
        self._written[name] = bad.offset

    def _letter(self, name: str, bad: Rejected, record: bytes | None) -> Letter:
        return Letter(
            input=name,
            offset=bad.offset,
            line_number=bad.line_number,
            reason=bad.reason[:REASON_CHARACTERS_MAX],
            step=bad.step,
            pipeline=self._pipeline,
            version=self._version,
            raw=bad.raw,
            record=record,
            written_ns=self._clock.now_ns(),
        )

    def _append(self, rows: list[dict[str, Any]]) -> None:
        batch = pa.RecordBatch.from_pylist(rows, schema=ARROW)
        self._last_version = self._version
        if self._held is None:
            self._box.append(batch)
            return
        self._held.append(batch)
        self._held_bytes += batch.nbytes
        if self._held_bytes > HELD_BYTES_MAX:
            self._pass_held()

    def _pass_held(self) -> None:
        held, self._held = self._held, None
        for batch in held or ():
            self._box.append(batch)

    def _read(self) -> None:
        """Read the dead letters of earlier tasks, maybe of other versions."""
        for batch in self._box.batches():
            reasons = batch.column("reason")
            for at, row in enumerate(batch.select(_FEW_COLUMNS).to_pylist()):
                self._last_version = row["version"]
                held = self._input(row["input"])
                if row["kind"] == START:
                    held.start_at(row["offset"])
                else:
                    why = reasons[at].as_py() if row["step"] == QUARANTINE else ""
                    held.note(row["offset"], row["step"], why)


class Found(NamedTuple):
    """The valid dead letters of a partition, and the damage of the others."""

    letters: list[Letter]
    damage: tuple[str, ...]


async def letters_in(
    store: ObjectStore, pipeline: str, partition: int = 0, *, superseded: bool = False
) -> Found:
    """Return the valid dead letters, in order of arrival; any process may, at any time.

    A dead letter is not valid if a later version of the pipeline has judged its record anew; with
    ``superseded`` it is returned all the same. Raises StoreError.
    """
    journal = journal_of(store, pipeline, partition)
    batches, wrong = batches_of(await journal.read())
    letters = list(counting(batches, superseded=superseded))
    return Found(letters, (*journal.damage, *wrong))


def lost(batches: Sequence[pa.RecordBatch], checkpoint: Checkpoint) -> list[str]:
    """Return whether there are fewer letters than a checkpoint counts, as text: the last are gone.

    It is not known where the oldest ones were deleted, and after a backfill, which keeps few.
    """
    if ORIGIN in checkpoint.notes or sum(b.nbytes for b in batches) > LETTER_BYTES_MAX // 2:
        return []
    counted = checkpoint.counters.get("dead_lettered", 0)
    letters = counting(batches)
    named = Counter(
        (o.input, o.offset) for o in letters if o.offset < checkpoint.cut.get(o.input, 0)
    )
    missing = counted - len(named)
    if missing <= 0:
        return []
    return [f"{missing} of the {counted} dead letters up to {checkpoint.name} are missing"]


def counting(batches: Sequence[pa.RecordBatch], *, superseded: bool = False) -> Iterator[Letter]:
    """Yield the valid dead letters in ``batches``."""
    starts = [] if superseded else list(_starts(batches))
    at = 0
    for batch in batches:
        for row in batch.to_pylist():
            if row["kind"] == LETTER and not any(
                at < start.at and row["input"] == start.input and row["offset"] >= start.offset
                for start in starts
            ):
                yield from_row(row)
            at += 1


class _Start(NamedTuple):
    at: int
    input: str
    offset: int


def _starts(batches: Iterable[pa.RecordBatch]) -> Iterator[_Start]:
    at = 0
    for batch in batches:
        for row in batch.select(("kind", "input", "offset")).to_pylist():
            if row["kind"] == START:
                yield _Start(at, row["input"], row["offset"])
            at += 1


def _no_row(_offset: int) -> None:
    return None


def _rows_of(batch: Batch) -> Callable[[int], pa.RecordBatch | None]:
    offsets = batch.offsets()

    def row_at(offset: int) -> pa.RecordBatch | None:
        row = int(np.searchsorted(offsets, offset))
        is_there = row < len(offsets) and offsets[row] == offset
        return batch.records.slice(row, 1) if is_there else None

    return row_at

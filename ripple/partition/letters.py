"""The dead letters of a partition, kept beside its checkpoints and before sinks commit."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from ripple.batch import RAW_BYTES_MAX, Rejected
from ripple.connectors.inputs import NO_ORIGINALS
from ripple.log import PartitionReader, Topic
from ripple.partition.letter import (
    LETTER,
    QUARANTINE,
    REASON_CHARACTERS_MAX,
    START,
    Letter,
    dumps_record,
    from_row,
    to_row,
)
from ripple.partition.letter_box import ARROW, batches_of
from ripple.world.ports import all_guards

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from ripple.batch import Batch
    from ripple.connectors.inputs import Original
    from ripple.partition.letter_box import LetterBox
    from ripple.world.ports import Clock, Disk

# Of one append; a letter is less than half as long, the text of its record included.
APPEND_BYTES_MAX = 4 << 20
_FEW_COLUMNS = ("kind", "input", "offset", "step", "version")


@dataclass(slots=True)
class _Held:
    """What the log holds of one input.

    Letters come in the order of offsets, so ``last_offset``, of the last one, says it all; only
    quarantined records can come late, when one kills the process that was applied before.
    """

    last_offset: int = -1
    quarantined: list[int] = field(default_factory=list)

    def note(self, offset: int, step: str | None) -> None:
        if step == QUARANTINE:
            self.quarantined.append(offset)
        else:
            self.last_offset = max(self.last_offset, offset)

    def start_at(self, offset: int) -> None:
        self.last_offset = min(self.last_offset, offset - 1)
        self.quarantined = [known for known in self.quarantined if known < offset]

    def has(self, offset: int, step: str | None) -> bool:
        return offset in self.quarantined if step == QUARANTINE else offset <= self.last_offset


class DeadLetterLog:
    """Keeps each refused record once, however often a partition's life ends and is repeated.

    A restarted life reads again from a checkpoint and refuses the same records again; those that
    the log holds already are not written a second time. For this the calls are ``begin``, and then
    ``write`` in the order of offsets; ``sync`` before a cut that includes the records is committed
    anywhere. ``counts`` are the letters written by this life, by cause.
    """

    def __init__(
        self,
        box: LetterBox,
        *,
        pipeline: str,
        version: str,
        clock: Clock,
        guards: Callable[[str], bool] = all_guards,
    ) -> None:
        """Take over ``box``, and learn what is in it.

        version: the pipeline's topology hash. guards: which safeguards are on, for tests of the
        tests. Raises LogDamagedError, OSError.
        """
        self.counts: Counter[str] = Counter()
        self._pipeline = pipeline
        self._version = version
        self._clock = clock
        self._guards = guards
        self._inputs: dict[str, _Held] = {}
        self._written: dict[str, int] = {}
        self._last_version: str | None = None
        self._box = box
        try:
            self._read()
        except BaseException:
            box.close()
            raise

    def begin(self, cut: Mapping[str, int]) -> None:
        """Say from where, per input, this life reads.

        If another version of the pipeline has written letters from there on, they do not count any
        more: this one judges those records anew.
        """
        if self._last_version in (None, self._version):
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
        """Keep what was refused of input ``name``; return how many of them were new.

        batch: where the whole records are, for those that have one there. originals: as they were
        where they came from, by offset. All of one batch go into one call, in any order. Raises
        OSError.
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
            record = dumps_record(row, originals.get(bad.offset))
            letter = self._letter(name, bad, record)
            letter_bytes = RAW_BYTES_MAX + len(letter.record or b"")
            if new and length_bytes + letter_bytes > APPEND_BYTES_MAX:
                self._append(new)
                new, length_bytes = [], 0
            new.append(to_row(letter))
            length_bytes += letter_bytes
            self.counts[letter.cause] += 1
            count += 1
        if new:
            self._append(new)
        return count

    def sync(self) -> None:
        """Make all letters durable, where that does not take a network: see ``Place.flush``.

        Raises SyncFailedError; then the life is over.
        """
        self._box.sync()

    def close(self) -> None:
        """Make all letters durable and release the box; closing twice is allowed."""
        self._box.close()

    def _input(self, name: str) -> _Held:
        return self._inputs.setdefault(name, _Held())

    def _check_order(self, name: str, bad: Rejected) -> None:
        """Raise ValueError: a letter that overtook another would hide it from the next life."""
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
        self._box.append(pa.RecordBatch.from_pylist(rows, schema=ARROW))
        self._last_version = self._version

    def _read(self) -> None:
        """Learn what is there already: by the lives before, maybe of other versions."""
        for batch in self._box.batches():
            for row in batch.select(_FEW_COLUMNS).to_pylist():
                self._last_version = row["version"]
                held = self._input(row["input"])
                if row["kind"] == START:
                    held.start_at(row["offset"])
                else:
                    held.note(row["offset"], row["step"])


def read_letters(disk: Disk, path: str, *, superseded: bool = False) -> Iterator[Letter]:
    """Yield the letters that count, in the order of the log; anybody may, at any time.

    A letter does not count if a later version of the pipeline has judged its record anew; with
    ``superseded`` it is yielded all the same. Raises TopicError when there is no log, and
    LogDamagedError.
    """
    with PartitionReader(Topic.open(disk, path), 0) as reader:
        # Both times up to the same end: somebody may be at work.
        first_offset, next_offset = reader.range()
        yield from counting(
            lambda: (one.records for one in batches_of(reader, first_offset, next_offset)),
            superseded=superseded,
        )


def counting(
    batches: Callable[[], Iterable[pa.RecordBatch]], *, superseded: bool = False
) -> Iterator[Letter]:
    """Yield the letters that count of those in ``batches``, which is asked twice."""
    starts = [] if superseded else list(_starts(batches()))
    at = 0
    for batch in batches():
        for row in batch.to_pylist():
            if row["kind"] == LETTER and not any(
                at < start.at and row["input"] == start.input and row["offset"] >= start.offset
                for start in starts
            ):
                yield from_row(row)
            at += 1


def count_lost(disk: Disk, path: str) -> int:
    """Return how many letters were lost from the log and given up; raises as ``read_letters``."""
    with PartitionReader(Topic.open(disk, path), 0) as reader:
        return sum(len(batch.rejected) for batch in batches_of(reader))


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

"""What a partition is working on, in a file that its next life reads: nobody survives to tell."""

from __future__ import annotations

import json
from bisect import bisect_left
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.checkpoint.checkpoints import prefix_of
from ripple.connectors.base import Batch, Rejected
from ripple.errors import InputError, LimitError, RippleError
from ripple.hashing import xxh64_of
from ripple.recovery.letter import QUARANTINE, raw_of
from ripple.recovery.suspicion import DEATHS_MAX, Range, Suspicion
from ripple.world.paths import folder_of
from ripple.world.replacing import replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ripple.recovery.suspicion import Entry
    from ripple.world.ports import Disk, File

# Beyond, the file begins anew with what still matters.
FILE_BYTES_MAX = 1 << 20
# So many killers are no accident of the data.
QUARANTINED_MAX = 100
REASON = f"killed the process {DEATHS_MAX} times"
_READ_BYTES_MAX = 64 << 20


class StuckError(RippleError):
    """The process dies again and again where no single record can be blamed."""


def in_flight_path(pipeline: str, partition: int = 0) -> str:
    """Return the file on the disk of the checkpoints, beside the dead letters."""
    return f"{prefix_of(pipeline, partition)}in-flight.jsonl"


class InFlight:
    """Notes what is applied before it is, so that a life that dies leaves a trace.

    The calls are, per batch: ``begin`` before each piece is applied, ``stabilizing`` before the
    views are brought up to date, ``idle`` before anything else is done (sinks, checkpoints, waiting
    for input) and before a life that was asked to end does. A life that fails on a record calls
    nothing, which counts as a death.

    Each note is one append without a sync: what a dead process wrote, the system still has. A power
    failure may forget some, which costs a count. What is quarantined is durable before
    ``quarantined`` tells of it.

    The file: lines of a checksum and a JSON array; the first says how many lines after it were made
    durable together. Those must be whole; the rest counts up to the first line that is not.
    """

    def __init__(
        self,
        disk: Disk,
        path: str,
        *,
        version: str,
        shown: Mapping[str, int] = MappingProxyType({}),
        quarantined_max: int = QUARANTINED_MAX,
        bytes_max: int = FILE_BYTES_MAX,
    ) -> None:
        """Read what the lives before left, count the death of the last one, and judge.

        version: the pipeline's topology hash; a new version is not blamed for an old one's deaths.
        shown: per input, the offset up to which an output shows the records: they have been passed
        once, and without them the output could not be gone on with, so that none is quarantined.
        quarantined_max: records in all. bytes_max: of the file, beyond which it begins anew.
        Raises StuckError when the last lives died bringing the same cut up to date, LimitError when
        too many records were quarantined, InputError when the file is damaged, and OSError.
        """
        self._disk = disk
        self._path = path
        self._bytes_max = bytes_max
        self._suspicion = Suspicion.of(_read(disk, path))
        self._suspicion.note(["opened", version])
        self.newly_quarantined = [
            (name, offset)
            for name, offset in self._suspicion.guilty()
            if offset >= shown.get(name, 0)
        ]
        """(input, offset) of the records that were found guilty just now."""
        for name, offset in self.newly_quarantined:
            self._suspicion.note(["quarantined", name, offset])
        self._file: File | None = None
        self._write()
        try:
            self._check(quarantined_max)
        except BaseException:
            self.close()
            raise

    def quarantined(self, name: str) -> Sequence[int]:
        """Return the offsets of input ``name`` that must be skipped, ascending."""
        return self._suspicion.quarantined.get(name, ())

    def pieces(self, name: str, first_offset: int, next_offset: int) -> list[Range]:
        """Return the pieces in which to apply these records: one, as long as none is suspect."""
        return self._suspicion.pieces(Range(name, first_offset, next_offset))

    def begin(self, name: str, first_offset: int, next_offset: int) -> None:
        """Note that these records are about to be applied; whatever was noted before is passed."""
        self._note(["begin", name, first_offset, next_offset])

    def stabilizing(self, cut: Mapping[str, int]) -> None:
        """Note that the views are about to be brought up to ``cut``."""
        self._note(["stabilizing", dict(cut)])

    def idle(self) -> None:
        """Note that nothing is in flight: if the process dies now, no record is to blame."""
        if self._suspicion.in_flight is not None:
            self._note(["idle"])

    def close(self) -> None:
        """Release the file, with what is in flight standing in it; closing twice is allowed."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _check(self, quarantined_max: int) -> None:
        stuck = self._suspicion.stuck
        if stuck is not None and stuck[1] >= DEATHS_MAX:
            raise StuckError(
                f"the process died {stuck[1]} times while it brought the views up to the cut "
                f"{json.dumps(stuck[0])}, and no single record can be blamed: see what ended it "
                "(no memory? an aggregate of your own?), then start a repaired pipeline, or remove "
                f"{self._path} from the folder of the checkpoints to try this one again"
            )
        count = sum(map(len, self._suspicion.quarantined.values()))
        if count > quarantined_max:
            raise LimitError(
                f"{count} records {REASON} each: that is hardly the records' fault; see what ends "
                f"it, and raise quarantined_max, {quarantined_max}, if they are to be skipped"
            )

    def _note(self, entry: Entry) -> None:
        if self._file is None:
            raise ValueError(f"{self._path} is closed")
        self._suspicion.note(entry)
        line = _line(entry)
        if self._length + len(line) > self._bytes_max:
            self._begin_anew()
        self._file.append(line)
        self._length += len(line)

    def _begin_anew(self) -> None:
        """Forget what is passed: by cutting it off, if nothing else has changed."""
        assert self._file is not None
        if self._suspicion.entries() == self._kept:
            self._file.truncate(self._kept_length)
            self._length = self._kept_length
        else:
            self._write()

    def _write(self) -> None:
        """Replace the file by one with what matters, durably."""
        self.close()
        self._kept = self._suspicion.entries()
        data = b"".join(map(_line, [["kept", len(self._kept)], *self._kept]))
        self._disk.make_folder(folder_of(self._path))
        replace(self._disk, self._path, data)
        self._file = self._disk.open(self._path)
        self._length = self._kept_length = len(data)


def set_aside(batch: Batch, offsets: Sequence[int]) -> Batch:
    """Return the batch with the records at these offsets, ascending, among the rejected."""
    low = bisect_left(offsets, batch.first_offset)
    chosen = offsets[low : bisect_left(offsets, batch.next_offset)]
    if not chosen:
        return batch
    is_killer = np.isin(batch.offsets(), chosen)
    killers = [
        Rejected(int(offset), None, REASON, raw_of(batch.records, int(row)), QUARANTINE)
        for row, offset in zip(np.flatnonzero(is_killer), batch.offsets()[is_killer], strict=True)
    ]
    rejected = sorted((*batch.rejected, *killers), key=lambda bad: bad.offset)
    return Batch(batch.records.filter(pa.array(~is_killer)), batch.next_offset, tuple(rejected))


def part_of(batch: Batch, piece: Range) -> Batch:
    """Return the records of a batch that are in ``piece``, which lies within it."""
    first, end = np.searchsorted(batch.offsets(), (piece.first_offset, piece.next_offset))
    rejected = tuple(
        bad for bad in batch.rejected if piece.first_offset <= bad.offset < piece.next_offset
    )
    return Batch(batch.records.slice(first, end - first), piece.next_offset, rejected)


def _line(entry: Entry) -> bytes:
    text = json.dumps(entry).encode()
    return b"%016x %b\n" % (xxh64_of(text), text)


def _read(disk: Disk, path: str) -> list[Entry]:
    if not disk.exists(path):
        return []
    entries = list(_entries(disk.read_bytes(path, length_max=_READ_BYTES_MAX)))
    match entries:
        case [["kept", int() as count], *rest] if len(rest) >= count:
            return rest
    raise InputError(
        f"{path} in the folder of the checkpoints is damaged: restore it from a copy; without it "
        "records that were quarantined would be taken in again"
    )


def _entries(data: bytes) -> Iterator[Entry]:
    """Yield what the lines say, up to the first that is not whole."""
    for line in data.split(b"\n")[:-1]:
        checksum, _, text = line.partition(b" ")
        if checksum != b"%016x" % xxh64_of(text):
            return
        yield json.loads(text)

"""What a partition does with records, whoever brings them: nothing else feeds an engine.

No I/O and no clock: the same entries lead to the same changes and the same refusals, in a plain
run, in a life, in a simulation.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from ripple.batch import Batch, Marker, Rejected
from ripple.connectors.raw_record import raw_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from contextlib import AbstractContextManager

    from ripple.engine import Changes, Engine, RejectedRow
    from ripple.partition.suspicion import Range


class Suspects(Protocol):
    """What is known of records that have killed; a function of the lives before."""

    def quarantined(self, name: str) -> Mapping[int, str]:
        """Return the offsets of input ``name`` that must be skipped, and why."""
        ...

    def pieces(self, name: str, first_offset: int, next_offset: int) -> list[Range]:
        """Return the pieces in which to apply these records: one, as long as none is suspect."""
        ...


class Drive:
    """An engine and what is known of its records."""

    def __init__(self, engine: Engine, suspects: Suspects | None = None) -> None:
        self.engine = engine
        self._suspects = suspects

    def apply(
        self,
        name: str,
        entry: Batch | Marker,
        passing: Callable[[Range], AbstractContextManager[None]] | None = None,
    ) -> list[Rejected]:
        """Take in what comes next of input ``name``; return what is refused, in any order.

        passing: what surrounds the applying of each piece, where there are suspects, so that
        somebody can note it before and learn of what it raises.
        Raises InputError for what does not go on at the cut, and what a user's code raises; then
        the engine is done for.
        """
        if isinstance(entry, Marker):
            self.engine.advance(name, entry.watermark_ns, entry.next_offset)
            return []
        if self._suspects is None:
            return self._apply(name, entry, [*entry.rejected])
        batch = set_aside(entry, self._suspects.quarantined(name))
        rejected = [*batch.rejected]
        for piece in self._suspects.pieces(name, batch.first_offset, batch.next_offset):
            part = batch if piece.span == batch.span else part_of(batch, piece)
            with nullcontext() if passing is None else passing(piece):
                self._apply(name, part, rejected)
        return rejected

    def _apply(self, name: str, batch: Batch, rejected: list[Rejected]) -> list[Rejected]:
        failed = self.engine.apply(name, batch.records, batch.next_offset, batch.offsets())
        if failed:
            rejected += refused(batch, failed)
        return rejected

    def bring_up(self) -> Changes:
        """Bring the views up to the cut and return what changed since the last time."""
        return self.engine.stabilize()

    def close(self) -> Changes:
        """Declare that no input goes on, and return what changed by that: windows end."""
        self.engine.close()
        return self.engine.stabilize()


def refused(batch: Batch, failed: Iterable[RejectedRow]) -> list[Rejected]:
    """Return what the engine refused of a batch as rejected records."""
    offsets = batch.offsets()
    return [
        Rejected(int(offsets[bad.row]), None, bad.reason, raw_of(batch.records, bad.row), bad.step)
        for bad in failed
    ]


def set_aside(batch: Batch, reasons: Mapping[int, str]) -> Batch:
    """Return the batch with the records at these offsets among the rejected, for these reasons."""
    chosen = [at for at in reasons if batch.first_offset <= at < batch.next_offset]
    if not chosen:
        return batch
    from ripple.partition.letter import QUARANTINE  # noqa: PLC0415 - slow to import, rarely wanted

    is_killer = np.isin(batch.offsets(), chosen)
    killers = [
        Rejected(at, None, reasons[at], raw_of(batch.records, int(row)), QUARANTINE)
        for row, at in zip(
            np.flatnonzero(is_killer), batch.offsets()[is_killer].tolist(), strict=True
        )
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

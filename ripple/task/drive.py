"""The only code that feeds an engine, the same for every source of records.

No I/O and no clock: the same entries lead to the same changes and the same rejected records, in
one-shot runs, durable runs and simulations.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from ripple.model.batch import Answers, Batch, IdleMarker, Marker, Rejected
from ripple.model.pipeline.input_names import source_of
from ripple.model.schema.exported import Part

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ripple.engine.machine import Changes, Engine, RejectedRow
    from ripple.model.schema.types import Field
    from ripple.task.dead_letters.suspicion import Range


class Suspects(Protocol):
    """Records suspected of killing the process; a function of the previous tasks."""

    def quarantined(self, name: str) -> Mapping[int, str]:
        """Return the offsets of input ``name`` that must be skipped, and why."""
        ...

    def pieces(self, name: str, first_offset: int, next_offset: int) -> list[Range]:
        """Return the pieces in which to apply these records: one, as long as none is suspect."""
        ...


class Drive:
    """An engine, and the suspects among its records."""

    def __init__(self, engine: Engine, suspects: Suspects | None = None) -> None:
        self.engine = engine
        self._suspects = suspects

    def apply(self, name: str, entry: Batch | Marker) -> list[Rejected]:
        """Apply the next entry of input ``name``; return the rejected records, in any order.

        Raises InputError for an entry that does not start at the cut, and any error of a user's
        code; the engine is unusable then.
        """
        if isinstance(entry, Batch):
            if self._suspects is None:
                return [*entry.rejected, *self.apply_part(name, entry)]
            rejected, parts = self.parts(name, entry)
            for _, part in parts:
                rejected += self.apply_part(name, part)
            return rejected
        if isinstance(entry, IdleMarker):
            self.engine.mark(name, entry)
        elif isinstance(entry, Answers):
            self.engine.answer(name, entry)
        else:
            self.engine.advance(name, entry.watermark_ns, entry.next_offset)
        return []

    def parts(self, name: str, batch: Batch) -> tuple[list[Rejected], list[tuple[Range, Batch]]]:
        """Return the records rejected before the batch is applied, and the pieces to apply in turn.

        Each piece is noted before ``apply_part`` takes it, in order.
        """
        assert self._suspects is not None
        batch = set_aside(batch, self._suspects.quarantined(name), self._fields(name))
        pieces = self._suspects.pieces(name, batch.first_offset, batch.next_offset)
        parts = [(one, batch if len(pieces) == 1 else part_of(batch, one)) for one in pieces]
        return [*batch.rejected], parts

    def apply_part(self, name: str, part: Batch) -> list[Rejected]:
        """Take in a piece; return its records that the engine refuses."""
        # Without gaps the engine knows them.
        offsets = part.offsets() if part.rejected or part.row_offsets is not None else None
        failed = self.engine.apply(
            name,
            part.rows,
            part.next_offset,
            offsets,
            len(part.rejected),
            watermarks_ns=part.row_watermarks_ns,
        )
        if part.watermark_ns is not None:
            self.engine.advance(name, part.watermark_ns, part.next_offset)
        return refused(part, failed, self._fields(name)) if failed else []

    def _fields(self, name: str) -> tuple[Field, ...]:
        return source_of(self.engine.plan, name).fields

    def stabilize(self) -> Changes:
        """Stabilize the views at the cut and return the changes since the last time."""
        return self.engine.stabilize()

    def close(self) -> Changes:
        """Declare the end of all inputs, and return the changes: windows end."""
        self.engine.close()
        return self.engine.stabilize()


def refused(
    batch: Batch, failed: Iterable[RejectedRow], fields: tuple[Field, ...] = ()
) -> list[Rejected]:
    """Return the rows of a batch that the engine refused, as rejected records of ``fields``."""
    from ripple.connectors.raw_record import raw_of  # noqa: PLC0415 - slow to import, rarely wanted

    offsets, records = batch.offsets(), batch.records
    return [
        Rejected(
            int(offsets[bad.row]), None, bad.reason, raw_of(records, bad.row, fields), bad.step
        )
        for bad in failed
    ]


def set_aside(batch: Batch, reasons: Mapping[int, str], fields: tuple[Field, ...] = ()) -> Batch:
    """Return the batch with the records at these offsets among the rejected, for these reasons."""
    chosen = [at for at in reasons if batch.first_offset <= at < batch.next_offset]
    if not chosen:
        return batch
    # slow to import, rarely wanted
    from ripple.connectors.letter import QUARANTINE  # noqa: PLC0415
    from ripple.connectors.raw_record import raw_of  # noqa: PLC0415

    offsets = batch.offsets()
    is_killer = np.isin(offsets, chosen)
    killers = [
        Rejected(at, None, reasons[at], raw_of(batch.records, int(row), fields), QUARANTINE)
        for row, at in zip(np.flatnonzero(is_killer), offsets[is_killer].tolist(), strict=True)
    ]
    rejected = sorted((*batch.rejected, *killers), key=lambda bad: bad.offset)
    kept = None if batch.row_offsets is None else offsets[~is_killer]
    left = batch.records.filter(pa.array(~is_killer))
    marks = batch.row_watermarks_ns
    marks = None if marks is None else marks[~is_killer]
    return Batch(left, batch.next_offset, tuple(rejected), kept, batch.watermark_ns, marks)


def part_of(batch: Batch, piece: Range) -> Batch:
    """Return the records of a batch that are in ``piece``, which lies within it."""
    offsets = batch.offsets()
    first, end = np.searchsorted(offsets, (piece.first_offset, piece.next_offset))
    rejected = tuple(
        bad for bad in batch.rejected if piece.first_offset <= bad.offset < piece.next_offset
    )
    at = None if batch.row_offsets is None else offsets[first:end]
    watermark_ns = batch.watermark_ns if piece.next_offset == batch.next_offset else None
    marks = batch.row_watermarks_ns
    marks = None if marks is None else marks[first:end]
    rows = Part.of_all(batch.rows).slice(first, end - first)
    return Batch(rows, piece.next_offset, rejected, at, watermark_ns, marks)

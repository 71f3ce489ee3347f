"""Records on their way to an engine: batches, markers, and what was refused.

An *offset* counts the data records of one source from 0; whatever is not a record (comments,
empty lines, a header) has none. A malformed record has an offset too, so that the number of
records applied, late and rejected always equals the number consumed.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Rejected:
    """A record that does not have the declared form.

    ``line_number`` counts physical lines from 1 and is None where there are no lines.
    ``reason`` is one of a few phrases, so that it can be counted; what was seen is in ``raw``,
    which holds at most the first RAW_BYTES_MAX bytes. ``step`` is the pipeline's step that refused
    it, None for what the source refused.
    """

    offset: int
    line_number: int | None
    reason: str
    raw: bytes
    step: str | None = None

    def __post_init__(self) -> None:
        # The words of somebody's exception may hold half a surrogate pair, which is no UTF-8.
        reason = self.reason.encode("utf-8", "backslashreplace").decode()
        object.__setattr__(self, "reason", reason)

    @property
    def cause(self) -> str:
        """The step and its reason in one text, by which refused records are counted."""
        return self.reason if self.step is None else f"{self.step}: {self.reason}"

    @property
    def place(self) -> str:
        """Where the record stands, in lines where there are lines."""
        return f"offset {self.offset}" if self.line_number is None else f"line {self.line_number}"


RAW_BYTES_MAX = 4096


@dataclass(frozen=True, slots=True)
class Batch:
    """Consecutive records of one source.

    Invariants: ``first_offset + span == next_offset``; every offset of the span belongs to exactly
    one row of ``records`` or one of ``rejected``; both are in offset order.
    """

    records: pa.RecordBatch
    next_offset: int
    rejected: tuple[Rejected, ...] = ()

    @property
    def span(self) -> int:
        """The number of offsets covered, rejected records included."""
        return int(self.records.num_rows) + len(self.rejected)

    @property
    def first_offset(self) -> int:
        """The offset of the first record, good or rejected."""
        return self.next_offset - self.span

    def offsets(self) -> npt.NDArray[np.int64]:
        """Return the offset of each row of ``records``, whatever the batching."""
        offsets = np.arange(self.first_offset, self.next_offset, dtype=np.int64)
        if not self.rejected:
            return offsets
        return np.delete(offsets, [bad.offset - self.first_offset for bad in self.rejected])

    def split(self, count: int) -> tuple[Batch, Batch]:
        """Divide the batch after its first ``count`` offsets, ``0 < count < span``."""
        middle = self.first_offset + count
        bad = bisect_left(self.rejected, middle, key=lambda rejected: rejected.offset)
        rows = count - bad
        head = Batch(self.records.slice(0, rows), middle, self.rejected[:bad])
        return head, Batch(self.records.slice(rows), self.next_offset, self.rejected[bad:])


@dataclass(frozen=True, slots=True)
class Marker:
    """A promise of the source: no event below ``watermark_ns`` follows.

    It takes the one offset before ``next_offset``, so that a cut says whether it has been seen, and
    goes to ``Engine.advance``.
    """

    watermark_ns: int
    next_offset: int

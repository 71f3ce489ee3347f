"""Records on their way to an engine: batches, markers, and rejected records.

An *offset* counts the data records of one source from 0; comments, empty lines and headers have
none, and a source may have holes: offsets without a record. A malformed record has an offset too,
so that the number of records applied, late and rejected always equals the number consumed.
"""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np

from ripple.core.frozen import frozen
from ripple.model.schema.exported import Part, as_arrow

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt
    import pyarrow as pa


@frozen
class Rejected:
    """A record that does not have the declared form.

    ``line_number`` counts physical lines from 1 and is None where there are no lines. ``reason`` is
    one of a few phrases, so that it can be counted; ``raw`` holds the record's first RAW_BYTES_MAX
    bytes. ``step`` is the pipeline's step that refused it, None for a record that the source
    rejected. ``row`` is the whole record, where the source has read it and refuses it. ``file`` is
    the one with the record, where a source has several.
    """

    offset: int
    line_number: int | None
    reason: str
    raw: bytes
    step: str | None = None
    row: pa.RecordBatch | None = field(default=None, repr=False, compare=False)
    file: str | None = None

    def __post_init__(self) -> None:
        # The text of a user's exception may hold half a surrogate pair, which is no UTF-8.
        reason = self.reason.encode("utf-8", "backslashreplace").decode()
        object.__setattr__(self, "reason", reason)

    @property
    def cause(self) -> str:
        """The step and its reason in one text, by which refused records are counted."""
        return self.reason if self.step is None else f"{self.step}: {self.reason}"

    @property
    def place(self) -> str:
        """The record's position: a line number where there are lines, of its file if known."""
        at = f"offset {self.offset}" if self.line_number is None else f"line {self.line_number}"
        return at if self.file is None else f"{self.file}, {at}"


RAW_BYTES_MAX = 4096


@frozen
class Batch:
    """Records of one source that follow each other.

    rows: a record batch, or the part of one that an engine reads where it lies. row_offsets:
    int64[n], the offset of each row, where there are holes: offsets without a record, as compaction
    and the marks of transactions leave them. None: there are none. watermark_ns: the input's after
    the batch, where records elsewhere have part in it; None where the batch's records determine it.
    row_watermarks_ns: int64[n], the same after each row; None if not recorded.

    Invariants: rows and rejected records are in offset order, no offset has two, and all are below
    next_offset. Without holes ``first_offset + span == next_offset``.
    """

    rows: pa.RecordBatch | Part
    next_offset: int
    rejected: tuple[Rejected, ...] = ()
    row_offsets: npt.NDArray[np.int64] | None = None
    watermark_ns: int | None = None
    row_watermarks_ns: npt.NDArray[np.int64] | None = None

    @property
    def records(self) -> pa.RecordBatch:
        """The rows as Arrow has them."""
        return as_arrow(self.rows)

    @property
    def span(self) -> int:
        """The number of records, rejected ones included."""
        return int(self.rows.num_rows) + len(self.rejected)

    @property
    def first_offset(self) -> int:
        """The offset of the first record, good or rejected; where none is, the next offset."""
        if self.row_offsets is None:
            return self.next_offset - self.span
        firsts = [int(at) for at in self.row_offsets[:1]] + [
            bad.offset for bad in self.rejected[:1]
        ]
        return min(firsts, default=self.next_offset)

    def offsets(self) -> npt.NDArray[np.int64]:
        """Return the offset of each row of ``records``, for any batching."""
        if self.row_offsets is not None:
            return self.row_offsets
        offsets = np.arange(self.first_offset, self.next_offset, dtype=np.int64)
        if not self.rejected:
            return offsets
        return np.delete(offsets, [bad.offset - self.first_offset for bad in self.rejected])

    def split_at(self, offset: int) -> tuple[Batch, Batch]:
        """Divide the batch before ``offset``, ``first_offset < offset < next_offset``."""
        head, tail = self.cut_at((offset, self.next_offset))
        return head, tail

    def cut_at(self, offsets: Iterable[int]) -> Iterator[Batch]:
        """Yield the batch in pieces that end before these rising offsets, all within it."""
        at, rejected, row, bad = self.row_offsets, self.rejected, 0, 0
        first = self.first_offset
        rows = Part.of_all(self.rows)
        if at is None and not rejected:
            for offset in offsets:
                yield Batch(rows.slice(row, offset - first - row), offset)
                row = offset - first
            return
        for offset in offsets:
            bad_end, found = bad, None
            if rejected:
                bad_end = bisect_left(rejected, offset, bad, key=lambda one: one.offset)
            if at is None:
                end = offset - first - bad_end
            else:
                end = int(np.searchsorted(at, offset))
                found = at[row:end]
            yield Batch(rows.slice(row, end - row), offset, rejected[bad:bad_end], found)
            row, bad = end, bad_end

    def reaching(self, next_offset: int) -> Batch:
        """Return the batch with the hole after it, up to ``next_offset``, if any."""
        if next_offset == self.next_offset:
            return self
        return Batch(self.rows, next_offset, self.rejected, self.offsets())


@frozen
class Marker:
    """A promise of the source: no event below ``watermark_ns`` follows.

    It takes the one offset before ``next_offset``, so that a cut says whether it has been seen, and
    goes to ``Engine.advance``.
    """

    watermark_ns: int
    next_offset: int


@frozen
class IdleMarker(Marker):
    """A recorded marker: an input was silent, so its watermark is ``watermark_ns`` from here on.

    It is an entry of the pipeline's own log of markers, in which ``next_offset`` is the offset
    after it. It counts after the records of ``input`` before ``offset`` and before all others.
    """

    input: str
    offset: int


@frozen
class Answers(Marker):
    """An entry of the log of answers: ends of calls of one ask, which count from here on.

    It promises nothing, so its ``watermark_ns`` is that before the first event, and ``next_offset``
    is the offset after it in that log. It goes to ``Engine.answer``, once the records of its rows
    were read. ask: its name. rows: per row that was asked for its identity, and the fields of the
    answer or the reason why there is none.
    """

    ask: str
    rows: pa.RecordBatch

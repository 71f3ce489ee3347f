"""Records from CSV: a file, compressed or not, or standard input."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ripple.connectors.cutting import recut
from ripple.connectors.files.csv.dialect import parsed
from ripple.connectors.files.csv.format import TRADES, CsvFormat
from ripple.connectors.line_blocks import line_blocks
from ripple.connectors.open_reading import OpenReading
from ripple.connectors.prefetch import prefetched
from ripple.connectors.raw_input import open_input
from ripple.core.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from ripple.connectors.connector import Reading
    from ripple.connectors.raw_input import RawInput
    from ripple.model.batch import Batch

BLOCK_BYTES = 1 << 20  # few thread switches; parsed data is still in a cache
LINE_LENGTH_BYTES_MAX = 1 << 20
PREFETCH_BLOCKS = 4


def open_source(path: str, reading: Reading) -> CsvSource:
    """Return the source at ``path``, which is opened when it is read; raises InputError."""
    file, options = parsed(path)
    csv_format = CsvFormat(
        reading.shape.schema,
        reading.shape.checks,
        logical=reading.shape.logical,
        header=reading.header if options.header is None else options.header,
        comments=options.comments or "ahead",
        dialect=options.dialect(file),
    )
    return CsvSource(file, csv_format, name=reading.name, batch_rows=reading.batch_rows)


class CsvSource:
    """The lines of ``path`` (``-``: standard input; ``.gz``, ``.zst``: decompressed) as records.

    A background thread reads and parses up to PREFETCH_BLOCKS blocks of ``block_bytes`` ahead
    while the consumer works, unless it would have to share the consumer's processor. Batches end
    at multiples of ``batch_rows`` (None: whole blocks), except the last one; of a slow stream,
    pending records are yielded when no input is waiting.
    Memory is bounded by the blocks and ``line_length_bytes_max``; a longer line is rejected.
    ``fraction_read`` is the fraction of the input in the batches so far, to a block; None before
    the first and if the length is unknown.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        csv_format: CsvFormat = TRADES,
        *,
        name: str = "trades",
        batch_rows: int | None = 1000,
        block_bytes: int = BLOCK_BYTES,
        line_length_bytes_max: int = LINE_LENGTH_BYTES_MAX,
    ) -> None:
        for limit, value in (
            ("batch_rows", 1 if batch_rows is None else batch_rows),
            ("block_bytes", block_bytes),
            ("line_length_bytes_max", line_length_bytes_max),
        ):
            if value < 1:
                raise InputError(f"{limit} must be at least 1, not {value}")
        self.name = name
        self._path = os.fspath(path)
        self._format = csv_format
        self._batch_rows = batch_rows
        self._block_bytes = block_bytes
        self._line_length_bytes_max = line_length_bytes_max
        self._reading = OpenReading()
        self._raw: RawInput | None = None
        self.fraction_read: float | None = None

    def batches(self, from_offset: int = 0) -> Iterator[Batch]:
        """Yield the records from ``from_offset`` on; see Source."""
        self.close()
        return self._reading.begin(self._read(from_offset))

    def close(self) -> None:
        """Stop reading, and release the file and the thread."""
        try:
            self._reading.close()
        except ValueError:  # another thread is in it: let it end, and not wait any more
            raw = self._raw
            if raw is not None:
                raw.interrupt()

    def _read(self, from_offset: int) -> Generator[Batch, None, None]:
        from ripple.connectors.files.csv.reader import CsvReader  # noqa: PLC0415 - other sources do without

        raw = self._raw = open_input(self._path)
        try:
            lines = line_blocks(raw, self._block_bytes, self._line_length_bytes_max)
            reader = CsvReader(self._format, self._path, self._line_length_bytes_max)
            read = _Numbered(reader.read(lines), raw)
            waits = raw.fraction_read is None  # as inputs of unknown length do
            ahead = prefetched(iter(read), PREFETCH_BLOCKS, raw.interrupt, waits=waits)
            try:
                yield from recut(self._noting(ahead, read), self._batch_rows, from_offset)
            finally:
                ahead.close()
        finally:
            self._raw = None
            raw.close()

    def _noting(
        self, ahead: Iterator[tuple[int, float | None, Batch | None, bool]], read: _Numbered
    ) -> Iterator[Batch | None]:
        for number, self.fraction_read, block, pauses in ahead:
            if block is not None:
                yield block
            # A pause is over if more has come while the consumer was busy.
            if pauses and number == read.number:
                yield None


class _Numbered:
    """Blocks with their numbers, the fraction of the input read, and the pauses after them.

    A block with no input waiting after it is held until the pause is certain, which is at once:
    the consumer, in another thread, wakes up once for both. ``number`` is that of the latest block
    or pause; another thread may look at it.
    """

    def __init__(self, blocks: Iterator[Batch | None], raw: RawInput) -> None:
        self._blocks = blocks
        self._raw = raw
        self.number = 0

    def __iter__(self) -> Iterator[tuple[int, float | None, Batch | None, bool]]:
        kept: Batch | None = None
        try:
            for block in self._blocks:
                if kept is not None or block is None:
                    yield self._item(kept, pauses=block is None)
                    kept = None
                if block is not None and self._raw.is_ready(0):
                    yield self._item(block, pauses=False)
                else:
                    kept = block
        except InputError:
            if kept is not None:
                yield self._item(kept, pauses=False)
            raise
        if kept is not None:
            yield self._item(kept, pauses=False)

    def _item(
        self, block: Batch | None, *, pauses: bool
    ) -> tuple[int, float | None, Batch | None, bool]:
        self.number += 1
        return self.number, self._raw.fraction_read, block, pauses

"""Cuts batches of any size to the requested size, without copying whole blocks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.core.errors import InputError
from ripple.model.batch import Batch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def recut(
    blocks: Iterable[Batch | None], batch_rows: int | None, from_offset: int = 0
) -> Iterator[Batch]:
    """Yield the same records in batches that end at the multiples of ``batch_rows``, then the rest.

    So the cuts do not depend on the first offset, even if a multiple lies in a hole. Slices share
    the block's memory; only a batch that straddles two blocks is copied. None among the blocks
    means that no more input is available for now: pending records are yielded as a short batch,
    and so they are before an error of ``blocks``. Offsets before ``from_offset`` are left
    out. ``batch_rows`` None leaves the blocks as they are.
    """
    check_batch_rows(batch_rows)
    cutter = Cutter(batch_rows)
    try:
        for block in blocks:
            if block is None:
                yield from cutter.flush()
            elif block.first_offset >= from_offset:
                yield from cutter.cut(block)
            elif block.next_offset > from_offset:
                yield from cutter.cut(block.split_at(from_offset)[1])
    except Exception:  # of any kind: the records before it count
        yield from cutter.flush()
        raise
    yield from cutter.flush()


def check_batch_rows(batch_rows: int | None) -> None:
    """Raise InputError unless batches can have so many rows; None is for blocks as they come."""
    if batch_rows is None:
        return
    if isinstance(batch_rows, bool) or not isinstance(batch_rows, int) or batch_rows < 1:
        raise InputError(f"batch_rows must be a whole number of at least 1, not {batch_rows!r}")


class Cutter:
    """Holds the records since the last multiple of ``batch_rows``, and cuts them; see ``recut``."""

    def __init__(self, batch_rows: int | None) -> None:
        self._batch_rows = batch_rows
        self._pending: list[Batch] = []

    def cut(self, block: Batch) -> Iterator[Batch]:
        """Yield the complete batches."""
        if self._batch_rows is None:
            yield block
            return
        if self._pending and block.first_offset >= (end := self._end(self._pending[0])):
            if not any(batch.span for batch in self._pending):
                self._pending.clear()  # the hole extends to the block
            yield from self.flush(end)
        if block.row_offsets is None and block.span and not self._pending:
            yield from self._pieces(block)
            return
        while block.next_offset >= (end := self._end(block)):
            if block.next_offset == end:
                self._pending.append(block)
                yield from self.flush()
                return
            head, block = block.split_at(end)
            self._pending.append(head)
            yield from self.flush()
            if block.row_offsets is None and block.span:
                yield from self._pieces(block)
                return
        self._pending.append(block)

    def _pieces(self, block: Batch) -> Iterator[Batch]:
        """Yield a block without holes in whole batches, and keep the rest; nothing is pending."""
        assert self._batch_rows is not None
        ends = range(self._end(block), block.next_offset, self._batch_rows)
        for piece in block.cut_at((*ends, block.next_offset)):
            if piece.next_offset % self._batch_rows:
                self._pending.append(piece)
            else:
                yield piece

    def flush(self, end: int | None = None) -> Iterator[Batch]:
        """Yield the pending records, and the hole after them up to ``end``."""
        if self._pending:
            pending, self._pending = self._pending, []
            whole = pending[0] if len(pending) == 1 else joined(pending)
            yield whole if end is None else whole.reaching(end)

    def _end(self, block: Batch) -> int:
        """Return the end of the batch in which ``block`` begins."""
        assert self._batch_rows is not None
        return (block.first_offset // self._batch_rows + 1) * self._batch_rows


def joined(batches: list[Batch]) -> Batch:
    """Return batches, each of which begins after the one before it, as one."""
    records = pa.concat_batches([batch.records for batch in batches])
    rejected = tuple(bad for batch in batches for bad in batch.rejected)
    joined = Batch(records, batches[-1].next_offset, rejected)
    if joined.first_offset == batches[0].first_offset and all(
        batch.row_offsets is None for batch in batches
    ):
        return joined
    return replace(joined, row_offsets=np.concatenate([batch.offsets() for batch in batches]))

"""Batches of any size, cut to the size that the caller wants, without copying whole blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from ripple.batch import Batch
from ripple.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


def recut(
    blocks: Iterable[Batch | None], batch_rows: int | None, from_offset: int = 0
) -> Iterator[Batch]:
    """Yield the same records in batches that end at the multiples of ``batch_rows``, then the rest.

    So the same cuts come, wherever reading begins. Slices share the block's memory; only a batch
    that straddles two blocks is copied. None among the blocks means that no more input is there for
    now, so what is pending goes out short; so it does before an InputError of ``blocks``. Offsets
    before ``from_offset`` are left out. ``batch_rows`` None keeps the blocks as they are.
    """
    check_batch_rows(batch_rows)
    cutter = _Cutter(batch_rows)
    try:
        for block in blocks:
            if block is None:
                yield from cutter.flush()
            elif block.first_offset >= from_offset:
                yield from cutter.cut(block)
            elif block.next_offset > from_offset:
                yield from cutter.cut(block.split(from_offset - block.first_offset)[1])
    except InputError:
        yield from cutter.flush()
        raise
    yield from cutter.flush()


def check_batch_rows(batch_rows: int | None) -> None:
    """Raise InputError unless batches can have so many rows; None is for blocks as they come."""
    if batch_rows is None:
        return
    if isinstance(batch_rows, bool) or not isinstance(batch_rows, int) or batch_rows < 1:
        raise InputError(f"batch_rows must be a whole number of at least 1, not {batch_rows!r}")


class _Cutter:
    """Holds what has come since the last multiple of ``batch_rows``."""

    def __init__(self, batch_rows: int | None) -> None:
        self._batch_rows = batch_rows
        self._pending: list[Batch] = []

    def cut(self, block: Batch) -> Iterator[Batch]:
        if self._batch_rows is None:
            yield block
            return
        while block.span >= (missing := self._batch_rows - block.first_offset % self._batch_rows):
            if block.span == missing:
                self._pending.append(block)
                yield from self.flush()
                return
            head, block = block.split(missing)
            self._pending.append(head)
            yield from self.flush()
        self._pending.append(block)

    def flush(self) -> Iterator[Batch]:
        if self._pending:
            pending, self._pending = self._pending, []
            yield pending[0] if len(pending) == 1 else _joined(pending)


def _joined(batches: list[Batch]) -> Batch:
    records = pa.concat_batches([batch.records for batch in batches])
    rejected = tuple(bad for batch in batches for bad in batch.rejected)
    return Batch(records, batches[-1].next_offset, rejected)

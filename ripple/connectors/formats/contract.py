"""The contract of formats: from values to records of a shape, and rejections."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa

from ripple.model.batch import RAW_BYTES_MAX, Batch, Rejected
from ripple.world.broker import Read, Records

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from ripple.connectors.record_shape import RecordShape
    from ripple.connectors.validation import Shown

TOMBSTONE = "the value is null"
# Another thread is there for more: to go there and back takes longer than this does.
AT_ONCE_BYTES = 32 << 10


class Values(Protocol):
    """One format."""

    @property
    def at_once(self) -> bool:
        """Whether it needs no I/O and no object per record: few bytes need no other thread."""
        ...

    @property
    def shape(self) -> RecordShape:
        """The shape of the records."""
        ...

    def batch(self, values: pa.Array) -> Batch:
        """Return the records of values (binary, none null), with their rows as offsets.

        Every value is a row or rejected. It is called by one caller at a time, in a thread or
        ``at_once``.
        """
        ...


def batch_of(read: Read, values: Values) -> Batch:
    """Return fetched values as a batch of records, at their offsets.

    A tombstone is rejected: it is a deletion, and none of the formats. Offsets that are rejected
    already have no values.
    """
    column, rows = read.records.values, len(read.offsets)
    if not rows:
        nothing = pa.RecordBatch.from_pylist([], schema=values.shape.arrow_schema())
        refused = tuple(Rejected(at, None, reason, raw) for at, reason, raw in read.refused)
        return Batch(nothing, read.next_offset, refused, read.offsets)
    if not column.null_count:
        return _at_offsets(values.batch(column), read.offsets, read.next_offset)
    there = np.asarray(column.is_valid())
    if there.any():
        found = values.batch(column.drop_null())
        batch = _at_offsets(found, read.offsets[there], read.next_offset)
    else:
        batch = batch_of(read._replace(offsets=read.offsets[:0]), values)
    deletions = (Rejected(int(at), None, TOMBSTONE, b"") for at in read.offsets[~there])
    rejected = sorted((*batch.rejected, *deletions), key=lambda bad: bad.offset)
    return Batch(batch.records, read.next_offset, tuple(rejected), batch.offsets())


def read_batch(
    offsets: list[int],
    messages: list[bytes],
    refused: Iterable[Rejected],
    end: int,
    values: Values,
) -> Batch:
    """Return messages at these offsets as a batch that ends before ``end``.

    refused: rejections at other offsets.
    """
    column = pa.array(messages, pa.binary())
    nothing = pa.nulls(len(messages), pa.binary())
    records = Records(nothing, column, np.zeros(len(messages), np.int64))
    batch = batch_of(Read(np.array(offsets, np.int64), records, end), values)
    rejected = sorted((*batch.rejected, *refused), key=lambda one: one.offset)
    return Batch(batch.records, end, tuple(rejected), batch.offsets())


def before(batch: Batch, end: int) -> Batch:
    """Return the part of a batch before ``end``, which lies within it or in a hole before it."""
    if batch.first_offset < end:
        return batch.split_at(end)[0]
    return Batch(batch.records.slice(0, 0), end, (), batch.offsets()[:0])


def at_rows(
    parts: Sequence[tuple[Batch, Sequence[int] | npt.NDArray[np.int64]]],
    refused: Iterable[Rejected],
    count: int,
    shape: RecordShape,
) -> Batch:
    """Return batches of some of ``count`` rows, each with the numbers of its rows, as one.

    refused: rows that are in none of them.
    """
    found = list(refused)
    offsets = [np.empty(0, np.int64)]
    batches = [pa.RecordBatch.from_pylist([], schema=shape.arrow_schema())]
    for part, numbers in parts:
        at = np.asarray(numbers, np.int64)
        found += [Rejected(int(at[bad.offset]), None, bad.reason, bad.raw) for bad in part.rejected]
        offsets.append(at[part.offsets()])
        batches.append(part.records)
    rows = np.concatenate(offsets)
    order = np.argsort(rows)
    records = pa.concat_batches(batches).take(pa.array(order))
    found.sort(key=lambda bad: bad.offset)
    return Batch(records, count, tuple(found), rows[order])


def shown_of(values: pa.Array) -> Shown:
    """Show rows as the values they were."""
    return lambda row: (None, values[row].as_buffer()[:RAW_BYTES_MAX].to_pybytes())


def _at_offsets(found: Batch, offsets: npt.NDArray[np.int64], next_offset: int) -> Batch:
    """Return a batch that has rows as offsets, with the offsets of these rows."""
    rejected = tuple(replace(bad, offset=int(offsets[bad.offset])) for bad in found.rejected)
    if next_offset - int(offsets[0]) == len(offsets):
        return Batch(found.records, next_offset, rejected)
    at = offsets if found.span == found.records.num_rows else offsets[found.offsets()]
    return Batch(found.records, next_offset, rejected, at)

"""The sorted rows of a source in a task: records for its engine, counted and compared."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as kinds

from ripple.connectors.locate import open_source
from ripple.core.errors import InputError
from ripple.model.batch import Batch
from ripple.model.row_identity import identities_of
from ripple.task.one_shot import at_once, entries

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

    from ripple.model.pipeline.nodes import SourceSpec
    from ripple.spark.dataframe.given import Given

_ALL = 1 << 64


def chunks(batches: Iterable[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Yield batches of ``rows`` rows each, the last one shorter."""
    held: list[pa.RecordBatch] = []
    count = 0
    for batch in batches:
        at = 0
        while at < batch.num_rows:
            part = batch.slice(at, rows - count)
            held.append(part)
            at += part.num_rows
            count += part.num_rows
            if count == rows:
                yield held[0] if len(held) == 1 else pa.concat_batches(held)
                held, count = [], 0
    if held:
        yield pa.concat_batches(held)


class Taken:
    """The rows of one source that a task has read.

    Invariant: they come in the order of ``Given``, so rows that are equal are neighbours.
    """

    def __init__(self, source: SourceSpec, given: Given) -> None:
        self._source = source
        self._given = given
        self._checks = given.checks(source)
        self._last: pa.RecordBatch | None = None
        self._rows = self._twice = self._digest = 0

    def batches(self, rows: pa.RecordBatch, first: int) -> Iterator[Batch]:
        """Yield rows as records, at offsets from ``first`` on.

        Raises InputError for two records of one identity.
        """
        self._compare(self._renamed(rows))
        for batch in self.records(rows):
            yield _moved(batch, first)

    def records(self, rows: pa.RecordBatch) -> Iterator[Batch]:
        """Yield rows in any order as records, at offsets from 0 on."""
        rows = self._renamed(rows)
        inputs = open_source(
            rows,
            self._source.schema,
            name=self._source.name,
            checks=self._checks,
            batch_rows=max(rows.num_rows, 1),
        )
        try:
            for batch in entries(inputs, max(rows.num_rows, 1)):
                assert isinstance(batch, Batch)  # rows have no markers
                self._count(batch.records)
                yield batch
        finally:
            at_once(inputs.close())

    def as_dict(self) -> dict[str, Any]:
        """Return the counts as JSON fields. digest: of the records, in any order."""
        return {"rows": self._rows, "twice": self._twice, "digest": f"{self._digest:016x}"}

    def _renamed(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        fields = self._given.columns
        columns = [rows.column(column) for _, column in fields]
        return pa.RecordBatch.from_arrays(columns, [name for name, _ in fields])

    def _compare(self, rows: pa.RecordBatch) -> None:
        if not rows.num_rows:
            return
        self._rows += rows.num_rows
        whole = rows if self._last is None else pa.concat_batches([self._last, rows])
        self._last = rows.slice(rows.num_rows - 1)
        time, identity = self._source.time_field, self._given.identity
        first = [] if time is None else [time]
        names = [*first, *(name for name in rows.schema.names if name != time)]
        if identity:
            same = repeated(whole, [*first, *(name for name in identity if name != time)])
            if len(same):
                raise InputError(self._same_text(whole, int(same[0])))
        else:
            self._twice += len(repeated(whole, names))

    def _same_text(self, rows: pa.RecordBatch, at: int) -> str:
        named = ", ".join(
            f"{name} {rows.column(name)[at].as_py()!r}" for name in self._given.identity
        )
        when = ""
        if self._source.time_field is not None:
            when = f", at {self._source.time_field} {rows.column(self._source.time_field)[at]}"
        return (
            f"two records of {self._source.name} have the identity {named}{when}: leave one out, "
            "as with df.dropDuplicates, or name more fields, identity="
        )

    def _count(self, records: pa.RecordBatch) -> None:
        if records.num_rows:
            hashes = identities_of(records, records.schema.names)
            self._digest = (self._digest + int(hashes.view(np.uint64).sum(dtype=np.uint64))) % _ALL


def repeated(rows: pa.RecordBatch, names: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return the rows that equal the one before in these columns, bit for bit; nulls are equal."""
    found = np.arange(1, rows.num_rows, dtype=np.int64)
    for name in names:
        if not len(found):
            break
        column = rows.column(name)
        if kinds.is_floating(column.type):
            column = column.view(pa.int64() if kinds.is_float64(column.type) else pa.int32())
        here, before = column.take(pa.array(found)), column.take(pa.array(found - 1))
        both = pc.and_(pc.is_null(here), pc.is_null(before))
        equal = pc.or_(pc.fill_null(pc.equal(here, before), False), both)
        found = found[equal.to_numpy(zero_copy_only=False)]
    return found


def _moved(batch: Batch, first: int) -> Batch:
    """Return a batch at offsets from ``first`` on, instead of 0."""
    return Batch(
        batch.rows,
        batch.next_offset + first,
        tuple(replace(bad, offset=bad.offset + first) for bad in batch.rejected),
        None if batch.row_offsets is None else batch.row_offsets + first,
    )

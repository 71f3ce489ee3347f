"""Records and changes held in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ripple.connectors.conforming import conformed
from ripple.connectors.cutting import recut
from ripple.connectors.record_shape import arrow_schema_of
from ripple.connectors.screening import screened
from ripple.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ripple.connectors.base import Batch
    from ripple.connectors.record_shape import RecordShape


class MemorySource:
    """Record batches, tables or mappings, in order, screened as records of ``shape``.

    Raises SchemaError at once when a column is missing or a value has not its field's type.
    """

    def __init__(
        self,
        records: Sequence[pa.RecordBatch | pa.Table] | Sequence[Mapping[str, Any]],
        shape: RecordShape,
        *,
        name: str = "records",
        batch_rows: int | None = 1000,
    ) -> None:
        self.name = name
        self._shape = shape
        self._batch_rows = batch_rows
        self._records = list(_batches(records, shape))

    def batches(self, from_offset: int = 0) -> Iterator[Batch]:
        """Yield the records from ``from_offset`` on; see Source."""
        return recut(self._screened(), self._batch_rows, from_offset)

    def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def _screened(self) -> Iterator[Batch]:
        offset = 0
        for records in self._records:
            batch = screened(records, self._shape, offset)
            offset = batch.next_offset
            yield batch


class MemorySink:
    """Keeps the changes it is given."""

    def __init__(self) -> None:
        self.batches: list[pa.RecordBatch] = []
        self.finished = False

    def write(self, changes: pa.RecordBatch) -> None:
        """Keep one batch of changes."""
        self.batches.append(changes)

    def finish(self) -> None:
        """Note that nothing more will come."""
        self.finished = True

    def abort(self) -> None:
        """Forget everything, as a file would be gone."""
        self.batches.clear()

    def rows(self) -> list[dict[str, Any]]:
        """Return all rows in order, with their ``op`` where the batches have one."""
        return [row for batch in self.batches for row in batch.to_pylist()]


def _batches(
    records: Sequence[pa.RecordBatch | pa.Table] | Sequence[Mapping[str, Any]], shape: RecordShape
) -> Iterator[pa.RecordBatch]:
    """Bring every item to the declared types."""
    schema = arrow_schema_of(shape.schema.fields)
    rows: list[Mapping[str, Any]] = []
    for item in records:
        if isinstance(item, pa.Table):
            for batch in item.to_batches():
                yield conformed(batch, schema, "the table")
        elif isinstance(item, pa.RecordBatch):
            yield conformed(item, schema, "the record batch")
        else:
            rows.append(item)
    if rows:
        arrays = []
        for field in schema:
            try:
                arrays.append(pa.array([row.get(field.name) for row in rows], field.type))
            except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
                raise SchemaError(f"field {field.name!r} is not {field.type}: {error}") from error
        yield pa.RecordBatch.from_arrays(arrays, schema.names)

"""Values that are Arrow IPC streams, each of one row."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from ripple.connectors.coercion import check_columns
from ripple.connectors.formats.contract import at_rows, shown_of
from ripple.connectors.record_shape import arrow_schema_of
from ripple.connectors.validation import screened
from ripple.core.codec.arrow import loads
from ripple.core.codec.errors import EncodingError
from ripple.core.errors import SchemaError
from ripple.model.batch import RAW_BYTES_MAX, Batch, Rejected
from ripple.model.schema.nested import with_leaves

if TYPE_CHECKING:
    from ripple.connectors.record_shape import RecordShape

NOT_ONE = "not an Arrow stream of one row"
OTHER_COLUMNS = "its columns are not those of the record"


class ArrowValues:
    """Each value is a stream of one schema and one batch of one row, validated before use.

    Columns that no field has are ignored; a value with columns that cannot become the fields is
    rejected.
    """

    at_once = True

    def __init__(self, shape: RecordShape) -> None:
        self.shape = shape
        self._wanted = arrow_schema_of(shape.schema.fields)
        self._checked: pa.Schema | None = None  # the last one, which others mostly have

    def batch(self, values: pa.Array) -> Batch:
        """Return the records of values; see Values."""
        rows: dict[pa.Schema, list[tuple[int, pa.RecordBatch]]] = {}
        refused: list[Rejected] = []
        for number, value in enumerate(values.to_pylist()):
            try:
                row = self._row(value)
                rows.setdefault(row.schema, []).append((number, row))
            except EncodingError:
                refused.append(Rejected(number, None, NOT_ONE, value[:RAW_BYTES_MAX]))
            except SchemaError:
                refused.append(Rejected(number, None, OTHER_COLUMNS, value[:RAW_BYTES_MAX]))
        shown = shown_of(values)
        parts = []
        for group in rows.values():
            at = [number for number, _ in group]
            records = pa.concat_batches([row for _, row in group])
            found = screened(records, self.shape, 0, None, lambda row, at=at: shown(at[row]))  # type: ignore[misc]
            parts.append((found, at))
        return at_rows(parts, refused, len(values), self.shape)

    def _row(self, value: bytes) -> pa.RecordBatch:
        """Return the row of a value. Raises EncodingError and SchemaError."""
        row = loads(value)
        if row.num_rows != 1:
            raise EncodingError(NOT_ONE)
        if row.schema != self._checked:
            self._check(row.schema)
        row = with_leaves(row, self.shape.paths)
        known = [name for name in row.schema.names if name in self._wanted.names]
        return row.select(known).replace_schema_metadata(None)

    def _check(self, found: pa.Schema) -> None:
        check_columns(found, self._wanted, "a value", shape=self.shape)
        self._checked = found

"""Values that are lines of CSV, by the compiled parser of CSV files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.connectors.cutting import recut
from ripple.connectors.files.csv.format import CsvFormat
from ripple.connectors.files.csv.reader import CsvReader
from ripple.connectors.files.csv.source import LINE_LENGTH_BYTES_MAX
from ripple.connectors.formats.contract import at_rows
from ripple.connectors.formats.json import buffers_of
from ripple.connectors.formats.lines import as_lines
from ripple.model.batch import RAW_BYTES_MAX, Batch, Rejected

if TYPE_CHECKING:
    from ripple.connectors.record_shape import RecordShape

NOT_ONE = "not one CSV record"


class CsvValues:
    """Each value is one record, as a CSV file has them in the order of the schema's fields.

    A line's end after it is ignored, and quoted fields may contain some. An empty value, which a
    file skips, is rejected.
    """

    at_once = True

    def __init__(self, shape: RecordShape) -> None:
        self.shape = shape
        self._format = CsvFormat(shape.schema, shape.checks, shape.columns, comments="none")

    def batch(self, values: pa.Array) -> Batch:
        """Return the records of values; see Values."""
        ends, data = buffers_of(values)
        # Nearly all values are a line: these are read together, and others alone.
        block, others = as_lines(data, ends)
        count = len(values) - len(others)
        found = self._read(block, count)
        if found is None:  # lines that are not as many records: which are none, is told one by one
            others, count = np.arange(len(values)), 0
        elif not len(others):
            return found
        return self._joined(values, found, others)

    def _read(self, block: bytes | pa.Buffer, count: int) -> Batch | None:
        """Return the records of so many lines, None if there are not as many."""
        reader = CsvReader(self._format, "a value", LINE_LENGTH_BYTES_MAX)
        lines = memoryview(block).cast("B") if len(block) else memoryview(b"")
        found = list(recut(reader.read([lines]), 1 << 31))
        if sum(batch.span for batch in found) != count or len(found) > 1:
            return None
        if not found:
            return Batch(self._nothing(), 0)
        rejected = tuple(
            Rejected(bad.offset, None, bad.reason, bad.raw) for bad in found[0].rejected
        )
        return Batch(found[0].records, count, rejected)

    def _joined(self, values: pa.Array, found: Batch | None, others: np.ndarray) -> Batch:
        """Read the ``others`` one by one, and put all in order."""
        rows = np.delete(np.arange(len(values)), others)
        parts = [] if found is None else [(found, rows)]
        refused: list[Rejected] = []
        for row in others.tolist():
            text = values[row].as_py()
            one = self._read(text, 1)
            if one is None:
                refused.append(Rejected(row, None, NOT_ONE, text[:RAW_BYTES_MAX]))
            else:
                parts.append((one, np.array([row])))
        return at_rows(parts, refused, len(values), self.shape)

    def _nothing(self) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist([], schema=self.shape.arrow_schema())

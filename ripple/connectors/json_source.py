"""Records from JSON lines: a file, compressed or not, or standard input."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.json

from ripple.connectors.base import RAW_BYTES_MAX, Batch, Rejected
from ripple.connectors.cutting import recut
from ripple.connectors.line_blocks import line_blocks
from ripple.connectors.raw_input import open_input
from ripple.connectors.record_shape import arrow_schema_of
from ripple.connectors.screening import screened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ripple.connectors.record_shape import RecordShape

BLOCK_BYTES = 1 << 20
LINE_LENGTH_BYTES_MAX = 1 << 20


class JsonSource:
    """The lines of ``path`` (``-``: standard input), each one JSON object, as records of ``shape``.

    Empty lines are no records; members that the schema does not have are ignored. Blocks are parsed
    by Arrow; in one with a malformed line, each line by itself. Memory is bounded by
    LINE_LENGTH_BYTES_MAX, beyond which a line is rejected.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        shape: RecordShape,
        *,
        name: str = "records",
        batch_rows: int | None = 1000,
    ) -> None:
        self.name = name
        self._path = os.fspath(path)
        self._shape = shape
        self._batch_rows = batch_rows
        wanted = arrow_schema_of(shape.schema.fields)
        self._schema = pa.schema([field.with_nullable(True) for field in wanted])

    def batches(self, from_offset: int = 0) -> Iterator[Batch]:
        """Yield the records from ``from_offset`` on; see Source."""
        return recut(self._blocks(), self._batch_rows, from_offset)

    def close(self) -> None:
        """Do nothing: the file is released with the iterator."""

    def _blocks(self) -> Iterator[Batch | None]:
        raw = open_input(self._path)
        try:
            offset, line_number = 0, 1
            for block in line_blocks(raw, BLOCK_BYTES, LINE_LENGTH_BYTES_MAX):
                if block is None:
                    yield None
                    continue
                data = bytes(block)
                for batch in self._batches(data, offset, line_number):
                    offset = batch.next_offset
                    yield batch
                line_number += data.count(b"\n")
        finally:
            raw.close()

    def _batches(self, data: bytes, offset: int, line_number: int) -> Iterator[Batch]:
        lines = data.split(b"\n")
        count = sum(not line.isspace() and bool(line) for line in lines)
        if not count:
            return
        records = self._parsed(data)
        if records is not None and records.num_rows == count:
            yield screened(records, self._shape, offset)
            return
        for number, line in enumerate(lines, line_number):
            if not line or line.isspace():
                continue
            records = self._parsed(line)
            if records is not None and records.num_rows == 1:
                yield screened(records, self._shape, offset)
            else:
                bad = Rejected(offset, number, "not a JSON record", line[:RAW_BYTES_MAX])
                none = pa.RecordBatch.from_pylist([], self._shape.arrow_schema())
                yield Batch(none, offset + 1, (bad,))
            offset += 1

    def _parsed(self, data: bytes) -> pa.RecordBatch | None:
        if len(data) > LINE_LENGTH_BYTES_MAX and b"\n" not in data:
            return None
        try:
            table = pyarrow.json.read_json(
                pa.BufferReader(data),
                read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=len(data) + 1),
                parse_options=pyarrow.json.ParseOptions(
                    explicit_schema=self._schema, unexpected_field_behavior="ignore"
                ),
            )
        except pa.ArrowInvalid:
            return None
        return table.combine_chunks().to_batches()[0] if table.num_rows else None

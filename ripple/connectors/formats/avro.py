"""Values that are Avro records, in the frame of a registry.

Records of primitive types, which may be unions with null, and of such records are decoded in
columns by a compiled pass; other writers' records one by one by fastavro.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ripple.connectors.formats.avro_columns import decode
from ripple.connectors.formats.avro_decimals import texts
from ripple.connectors.formats.avro_writers import Writer, writer_of
from ripple.connectors.formats.contract import at_rows, shown_of
from ripple.connectors.formats.framed import HEAD_BYTES, NOT_FRAMED, WriterSchemas, by_schema
from ripple.connectors.formats.json import buffers_of
from ripple.connectors.formats.rows import batch_of_rows
from ripple.connectors.validation import screened
from ripple.core.extras import needed
from ripple.model.batch import RAW_BYTES_MAX, Batch, Rejected
from ripple.model.schema.avro_times import DAY_NS
from ripple.model.schema.logical.columns import texts_of
from ripple.model.schema.time_form import BEYOND_INT64, in_ns
from ripple.model.schema.types import Bytes, Logical

with needed("avro", "format=avro of a kafka: URI"):
    import fastavro

if TYPE_CHECKING:
    import numpy.typing as npt

    from ripple.connectors.formats.registry import Registry
    from ripple.connectors.record_shape import RecordShape

LEFT_OVER = "bytes are left over after the record"
NOT_ONE = "not a record of its schema"


class AvroValues:
    """Each value is a record of the schema with the id it begins with; fields are found by name.

    Fields that the pipeline does not have are skipped. Records in other types than the pipeline's
    are rejected with the id of the schema and the reason.
    """

    at_once = False

    def __init__(self, shape: RecordShape, registry: Registry, *, is_slow: bool = False) -> None:
        """is_slow: read all of them one by one, for comparison in tests."""
        self.shape = shape
        self._is_slow = is_slow
        self._writers = WriterSchemas(registry, lambda found: writer_of(found, shape), Writer)

    def batch(self, values: pa.Array) -> Batch:
        """Return the records of values; see Values.

        Raises InputError where the registry does not answer: then no record is at fault.
        """
        parts: list[tuple[Batch, npt.NDArray[np.int64]]] = []
        refused: list[Rejected] = []
        for number, rows in by_schema(values):
            writer = Writer(NOT_FRAMED) if number < 0 else self._writers.at(number)
            if writer.why_not:
                refused += [
                    Rejected(row, None, writer.why_not, values[row].as_py()[:RAW_BYTES_MAX])
                    for row in rows.tolist()
                ]
            elif writer.fields is not None and not self._is_slow:
                parts.append((self._in_columns(values, rows, writer), rows))
            else:
                parts.append((self._one_by_one(values, rows, writer), rows))
        if len(parts) == 1 and not refused:
            return parts[0][0]
        return at_rows(parts, refused, len(values), self.shape)

    def _in_columns(self, values: pa.Array, rows: npt.NDArray[np.int64], writer: Writer) -> Batch:
        ends, data = buffers_of(values)
        assert writer.fields is not None
        columns, unsound = decode(data, ends, rows, HEAD_BYTES, writer.fields)
        names = writer.names
        wanted = [n for n, (_, _, is_wanted) in zip(names, writer.fields, strict=True) if is_wanted]
        refused = {
            row: f"{names[at]} is cut off, or no value" if at < len(names) else LEFT_OVER
            for row, at in unsound
        }
        for at, name in enumerate(wanted):
            if name in writer.scales:
                columns[at] = texts(columns[at], writer.scales[name])
            elif columns[at].type == pa.binary() and not self._is_bytes(name):
                columns[at] = _as_text(columns[at], name, refused)
            elif name in writer.ticks_ns:
                columns[at] = self._moments(columns[at], name, writer.ticks_ns[name], refused)
        shown, numbers = shown_of(values), rows
        records = pa.RecordBatch.from_arrays(columns, wanted)
        if not wanted:  # how many rows there are is told by columns alone
            return batch_of_rows([{}] * len(rows), refused, self.shape, shown)
        return screened(records, self.shape, 0, refused, lambda row: shown(int(numbers[row])))

    def _moments(
        self, numbers: pa.Array, name: str, ticks_ns: int, refused: dict[int, str]
    ) -> pa.Array:
        """Return moments or dates of a unit as the shape has them: nanoseconds, or texts."""
        kind = self.shape.logical.get(name)
        logical = kind if isinstance(kind, Logical) else None
        if ticks_ns != 1 and (logical is None or ticks_ns != DAY_NS):
            numbers, failed = in_ns(numbers, ticks_ns)
            for row in np.flatnonzero(failed).tolist():
                refused.setdefault(row, f"{name} {BEYOND_INT64}")
        return numbers if logical is None else texts_of(numbers, logical)

    def _is_bytes(self, name: str) -> bool:
        return isinstance(self.shape.logical.get(name), Bytes)

    def _one_by_one(self, values: pa.Array, rows: npt.NDArray[np.int64], writer: Writer) -> Batch:
        found: list[dict[str, Any]] = []
        refused: dict[int, str] = {}
        for row in rows.tolist():
            record: Any = {}
            try:
                record = object_of(values[row].as_py(), writer.parsed)
            except ValueError as error:
                refused[len(found)] = str(error)
            found.append(record if isinstance(record, dict) else {})
            writer.to_ns(found[-1], self.shape.logical)
        shown = shown_of(values)
        return batch_of_rows(found, refused, self.shape, lambda row: shown(int(rows[row])))


def object_of(value: bytes, parsed: Any) -> Any:
    """Return a framed value of a schema that fastavro has parsed. Raises ValueError."""
    left = io.BytesIO(value[HEAD_BYTES:])
    try:
        found = fastavro.schemaless_reader(left, parsed)
    except Exception:  # any error of a decoder of untrusted bytes
        raise ValueError(NOT_ONE) from None
    if left.read(1):
        raise ValueError(LEFT_OVER)
    return found


def _as_text(column: pa.Array, name: str, refused: dict[int, str]) -> pa.Array:
    """Return a binary column as text; values that are not UTF-8 are null, and rejected."""
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        found: list[str | None] = []
        for row, value in enumerate(column.to_pylist()):
            try:
                found.append(None if value is None else value.decode())
            except UnicodeDecodeError:
                found.append(None)
                refused.setdefault(row, f"{name} is not UTF-8")
        return pa.array(found, pa.string())

"""Records and changes held in memory, and records that come from an iterator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ripple.connectors.conforming import check_absent, check_columns, conformed
from ripple.connectors.cutting import recut
from ripple.connectors.record_shape import arrow_schema_of
from ripple.connectors.screening import screened
from ripple.errors import InputError, SchemaError
from ripple.schema.members import field_names, is_record_class

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from ripple.connectors.base import Batch
    from ripple.connectors.record_shape import RecordShape

ROWS_AT_ONCE = 1000  # of an iterator, that are brought to their types together


class MemorySource:
    """Record batches, tables, mappings or instances of a record class, in order, as ``shape`` says.

    Raises SchemaError at once when a column is missing or a value has not its field's type, and
    InputError for what is no record.
    """

    def __init__(
        self,
        records: Iterable[Any],
        shape: RecordShape,
        *,
        name: str = "records",
        batch_rows: int | None = 1000,
    ) -> None:
        self.name = name
        self._shape = shape
        self._batch_rows = batch_rows
        self._records = list(_batches(records, shape, None))

    def batches(self, from_offset: int = 0) -> Iterator[Batch]:
        """Yield the records from ``from_offset`` on; see Source."""
        return recut(_screened(self._records, self._shape), self._batch_rows, from_offset)

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


class IteratorSource:
    """What MemorySource takes, from an iterator: read once, few rows in memory at a time.

    A column is missing if none of the first ROWS_AT_ONCE mappings has it. Errors come from the
    iterator of ``batches``.
    """

    def __init__(
        self,
        records: Iterable[Any],
        shape: RecordShape,
        *,
        name: str = "records",
        batch_rows: int | None = 1000,
    ) -> None:
        self.name = name
        self._shape = shape
        self._batch_rows = batch_rows
        self._records = _batches(records, shape, ROWS_AT_ONCE)
        self._is_read = False

    def batches(self, from_offset: int = 0) -> Iterator[Batch]:
        """Yield the records from ``from_offset`` on, once; see Source."""
        if self._is_read:
            raise InputError(f"{self.name}: an iterator can be read once")
        self._is_read = True
        return recut(_screened(self._records, self._shape), self._batch_rows, from_offset)

    def close(self) -> None:
        """Let go of the iterator."""
        self._records.close()


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


def _screened(records: Iterable[pa.RecordBatch], shape: RecordShape) -> Iterator[Batch]:
    offset = 0
    for batch in records:
        found = screened(batch, shape, offset)
        offset = found.next_offset
        yield found


def _batches(
    records: Iterable[Any], shape: RecordShape, rows_at_once: int | None
) -> Generator[pa.RecordBatch, None, None]:
    """Bring every item to the declared types; rows_at_once: of those that come one by one."""
    schema = arrow_schema_of(shape.schema.fields)
    rows: list[Mapping[str, Any]] = []
    is_first = True
    for number, item in enumerate(records):
        is_arrow = hasattr(item, "__arrow_c_stream__")
        if rows and (is_arrow or len(rows) == rows_at_once):
            yield _of_rows(rows, schema, may_lack=not is_first and rows_at_once is not None)
            rows, is_first = [], False
        if is_arrow:
            yield from _of_arrow(item, schema)
        else:
            rows.append(_as_mapping(item, number))
    if rows:
        yield _of_rows(rows, schema, may_lack=not is_first and rows_at_once is not None)


def _of_arrow(item: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the batches of a record batch, a table, or what can be read as a stream of batches."""
    words = {pa.RecordBatch: "record batch", pa.Table: "table"}
    name = f"the {words.get(type(item), type(item).__name__)}"
    try:
        reader = pa.RecordBatchReader.from_stream(item)
    except pa.ArrowInvalid as error:
        raise InputError(f"{name} has no columns with names: {error}") from error
    check_columns(reader.schema, schema, name)
    _check_any(reader.schema.names, schema, name)
    for batch in reader:
        yield conformed(batch, schema, name)


def _of_rows(rows: list[Mapping[str, Any]], schema: pa.Schema, *, may_lack: bool) -> pa.RecordBatch:
    if not may_lack:
        names = dict.fromkeys(name for row in rows for name in row)
        for field in schema:
            if field.name not in names:
                check_absent(field, names, "the source")
        _check_any(names, schema, "the source")
    arrays = []
    for field in schema:
        try:
            arrays.append(pa.array([row.get(field.name) for row in rows], field.type))
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as error:
            raise SchemaError(f"field {field.name!r} is not {field.type}: {error}") from error
    return pa.RecordBatch.from_arrays(arrays, schema.names)


def _check_any(names: Iterable[str], schema: pa.Schema, source: str) -> None:
    """Raise SchemaError where all columns are optional and none of them is there."""
    if set(schema.names).isdisjoint(names):
        wanted, found = ", ".join(schema.names), ", ".join(map(str, names)) or "none"
        raise SchemaError(f"{source} has none of the columns {wanted}: it has {found}")


def _as_mapping(row: Any, number: int) -> Mapping[str, Any]:
    if isinstance(row, Mapping):
        return row
    if is_record_class(type(row)):
        return {name: getattr(row, name) for name in field_names(type(row))}
    raise InputError(
        f"row {number} of the source is {row!r} ({type(row).__name__}): rows are mappings by field "
        "name, instances of a record class, or Arrow batches and tables"
    )

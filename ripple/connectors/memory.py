"""Records and changes held in memory, and records that come from an iterator."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.types as kinds

from ripple.connectors.coercion import check_absent, check_columns, is_text
from ripple.connectors.contract import BasicSink
from ripple.connectors.cutting import recut
from ripple.connectors.handover import LiveItems, Pause
from ripple.connectors.python_values import as_texts, column_of, has_path, values_at
from ripple.connectors.raw_record import raw_of_values
from ripple.connectors.record_shape import arrow_schema_of
from ripple.connectors.validation import screened
from ripple.core.errors import InputError, SchemaError
from ripple.model.records.members import field_names, is_record_class
from ripple.model.schema.nested import with_leaf_types
from ripple.model.schema.python_rows import python_rows

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Iterator

    from ripple.connectors.contract import Commit
    from ripple.connectors.record_shape import RecordShape
    from ripple.connectors.validation import Shown
    from ripple.model.batch import Batch

ROWS_AT_ONCE = 1000  # of an iterator, that are brought to their types together
ROWS_HELD = 4000  # the same of a list: more would keep other threads from their turn


class MemorySource:
    """Record batches, tables, mappings or instances of a record class, in order, as ``shape`` says.

    Mappings may have members that are no fields. A value of its field's type that the field cannot
    hold rejects its record; one of another type, such as 1.5 for an integer, is an error.
    Raises SchemaError at once when a column is missing or has another type, or a mapping a value of
    another type; InputError for items that are no records, and for damaged Arrow data.
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
        self._held = list(_held(records, shape, ROWS_HELD, None))

    def batches(self, from_offset: int = 0) -> Iterator[Batch]:
        """Yield the records from ``from_offset`` on; see Source."""
        return recut(_screened(self._held, self._shape), self._batch_rows, from_offset)

    def close(self) -> None:
        """Do nothing: there is nothing to release."""


class IteratorSource:
    """Rows of an iterator as a source: read once, few rows in memory at a time.

    A thread reads it, so that a batch ends where it pauses.
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
        self._items: Iterable[Any] = records
        if not isinstance(records, (Sequence, LiveItems)):  # a list of one stream is all there
            self._items = LiveItems(iter(records), ROWS_AT_ONCE, rows_in)
        self._held = _held(self._items, shape, ROWS_AT_ONCE, ROWS_AT_ONCE)
        self._is_read = False

    def batches(self, from_offset: int = 0) -> Iterator[Batch]:
        """Yield the records from ``from_offset`` on, once; see Source."""
        if self._is_read:
            raise InputError(f"{self.name}: an iterator can be read once")
        self._is_read = True
        return recut(_screened(self._held, self._shape), self._batch_rows, from_offset)

    def close(self) -> None:
        """Let go of the iterator."""
        self._held.close()
        if isinstance(self._items, LiveItems):
            self._items.close()


class MemorySink(BasicSink):
    """Keeps the changes it is given. finished: whether they were committed."""

    def __init__(self) -> None:
        self.batches: list[pa.RecordBatch] = []
        self.finished = False

    def write(self, changes: pa.RecordBatch, reached: Commit) -> None:  # noqa: ARG002 - Sink's
        """Keep one batch of changes."""
        self.batches.append(changes)

    def commit(self, reached: Commit) -> None:  # noqa: ARG002 - Sink's
        """Record the commit."""
        self.finished = True

    def close(self) -> None:
        """Forget all uncommitted rows, as a file would be gone."""
        if not self.finished:
            self.batches.clear()

    def rows(self) -> list[dict[str, Any]]:
        """Return all rows in order, with their ``op`` where the batches have one."""
        return [row for batch in self.batches for row in python_rows(batch)]


class Held(NamedTuple):
    """Records in columns; which of them it is known that they are none, and how to show one."""

    records: pa.RecordBatch
    refused: Mapping[int, str]
    shown: Shown | None


class _Failure(NamedTuple):
    """The error of an iterator, after its items."""

    error: Exception


def _screened(held: Iterable[Held | None], shape: RecordShape) -> Iterator[Batch | None]:
    offset = 0
    for one in held:
        if one is None:
            yield None
            continue
        batch = screened(one.records, shape, offset, one.refused, one.shown)
        offset = batch.next_offset
        if batch.span:
            yield batch


def _held(
    records: Iterable[Any], shape: RecordShape, rows_at_once: int, judged_rows: int | None
) -> Generator[Held | None, None, None]:
    """Bring every item into columns; None where no more items are there for now.

    rows_at_once: the rows of a batch of single items. judged_rows: see ColumnsFound.
    """
    schema = arrow_schema_of(shape.schema.fields)
    columns = ColumnsFound(shape, judged_rows)
    rows: list[Mapping[str, Any]] = []
    number = 0
    for item in _to_its_end(records):
        is_row = isinstance(item, Mapping) or not _is_other(item)
        if rows and (not is_row or len(rows) == rows_at_once):
            columns.look(rows)
            yield of_rows(rows, shape, number - len(rows))
            rows = []
        if is_row:
            rows.append(as_mapping(item, number))
            number += 1
        elif isinstance(item, _Failure):
            raise item.error
        elif item is Pause.PAUSE:
            yield None
        else:
            number += 1
            yield from of_arrow(item, schema, shape)
    if rows:
        columns.look(rows)
    columns.check()
    if rows:
        yield of_rows(rows, shape, number - len(rows))


def _to_its_end(records: Iterable[Any]) -> Iterator[Any]:
    """Yield the records, and the error of their iterator: those before it count."""
    try:
        yield from records
    except Exception as error:  # any error of a user's iterator
        yield _Failure(error)


def _is_other(item: Any) -> bool:
    """Tell whether an item stands for other than one row."""
    return isinstance(item, (Pause, _Failure)) or hasattr(item, "__arrow_c_stream__")


class ColumnsFound:
    """Whether the fields are among the names of mappings: judged by the first ones.

    So it does not matter where batches end. rows_max: how many are judged, None for all.
    """

    def __init__(self, shape: RecordShape, rows_max: int | None) -> None:
        self._shape = shape
        self._left = sys.maxsize if rows_max is None else rows_max
        self._names: dict[str, None] = {}
        self._is_checked = True

    def look(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Take the names of the next mappings. Raises SchemaError once enough have been seen."""
        if not self._left:
            return
        seen = rows[: self._left]
        self._left -= len(seen)
        self._is_checked = False
        self._names.update(dict.fromkeys(name for row in seen for name in row))
        for path, parts in self._shape.paths.items():
            if any(has_path(row, parts) for row in seen):
                self._names[path] = None
        if not self._left:
            self.check()

    def check(self) -> None:
        """Raise SchemaError if a field that is not optional is absent, or if all are."""
        if self._is_checked:
            return
        self._is_checked = True
        schema = arrow_schema_of(self._shape.schema.fields)
        for field in schema:
            if field.name not in self._names:
                check_absent(field, self._names, "the source")
        _check_any(self._names, schema, "the source")


def of_arrow(item: Any, schema: pa.Schema, shape: RecordShape) -> Iterator[Held]:
    """Yield the batches of a record batch, a table, or a readable stream of batches."""
    words = {pa.RecordBatch: "record batch", pa.Table: "table"}
    name = f"the {words.get(type(item), type(item).__name__)}"
    tops = [*schema.names, *(parts[0] for parts in shape.paths.values())]
    # Before its reader: DuckDB counts by a query, and a connection has one at a time.
    is_empty = hasattr(item, "__len__") and not len(item)
    reader = _reader_of(item, tops, name, schema)
    check_columns(reader.schema, schema, name, is_empty=is_empty, shape=shape)
    found = with_leaf_types(reader.schema, schema.names, name)
    _check_any(found.names, schema, name)
    for batch in reader:
        _check_bytes(batch, tops, name)
        yield Held(batch, {}, None)


_EXACT_MAX = 2.0**53  # a larger integer may be another one as a float

# Errors of values that Arrow has no type for; an integer may be too large for any.
_NO_ARROW = (pa.ArrowException, TypeError, ValueError, OverflowError)


def _reader_of(
    item: Any, names: Sequence[str], name: str, schema: pa.Schema
) -> pa.RecordBatchReader:
    """Return a reader of an object's batches. Errors of a column name it."""
    library = type(item).__module__.split(".")[0]
    if library == "narwhals":
        item = item.to_native()
        library = type(item).__module__.split(".")[0]
    is_frame = library in ("pandas", "polars") and hasattr(item, "columns")
    is_unique = is_frame and len(set(item.columns)) == len(item.columns)
    if library == "pandas" and is_unique and not len(item):
        item = item.astype(object)  # a column of nulls is float in pandas, whichever type was meant
    elif library == "pandas" and is_unique:
        item = _with_whole_numbers(item, schema)
    try:
        return pa.RecordBatchReader.from_stream(item)
    except _NO_ARROW as error:
        if not is_frame:
            raise InputError(f"{name} has no columns with names: {error}") from error
        if not is_unique:
            raise SchemaError(f"{name} has columns of the same name: {error}") from error
    # Arrow may have no type for columns of a frame; unused ones need none.
    wanted = [column for column in item.columns if column in names]
    for column in wanted:
        try:
            pa.RecordBatchReader.from_stream(item[[column]])
        except _NO_ARROW as error:
            reason = error if isinstance(error, UnicodeError) else error.args[0]
            if library == "polars":
                reason = f"Arrow has no type for {item[column].dtype}: cast it"
            raise SchemaError(f"column {column!r} of {name}: {reason}") from error
    return pa.RecordBatchReader.from_stream(item[wanted])


def _with_whole_numbers(frame: Any, schema: pa.Schema) -> Any:
    """Return a frame of pandas with integers where it has floats for them, if nothing is lost.

    A column of integers with a missing one is of floats in pandas.
    """
    for field in schema:
        if not kinds.is_integer(field.type) or field.name not in frame.columns:
            continue
        column = frame[field.name]
        if column.dtype.kind != "f":
            continue
        with suppress(TypeError, ValueError, NotImplementedError):  # Arrow has such floats
            # Before the conversion, which cuts fractions of Arrow's floats off.
            found = column.dropna().astype("float64")
            if (found.abs() <= _EXACT_MAX).all() and (found % 1 == 0).all():
                frame = frame.assign(**{field.name: column.astype("Int64")})
    return frame


def _check_bytes(records: pa.RecordBatch, names: Iterable[str], source: str) -> None:
    """Raise InputError where Arrow's own structure is damaged."""
    for name in names:
        if name in records.schema.names:
            try:
                _as_bytes(records.column(name)).validate(full=True)
            except pa.ArrowInvalid as error:
                raise InputError(f"column {name!r} of {source} is damaged: {error}") from error


def _as_bytes(column: pa.Array) -> pa.Array:
    """Return a column without the claim that its text is UTF-8, which each record is asked for."""
    if kinds.is_dictionary(column.type):
        values = _as_bytes(column.dictionary)
        return pa.DictionaryArray.from_arrays(column.indices, values, safe=False)
    return column.cast(pa.large_binary()) if is_text(column.type) else column


def of_rows(rows: Sequence[Mapping[str, Any]], shape: RecordShape, first: int) -> Held:
    """Bring rows, the first of which is number ``first`` of the source, into columns."""
    schema = arrow_schema_of(shape.schema.fields)
    arrays: list[pa.Array] = []
    values: dict[str, list[Any]] = {}
    refused: dict[int, str] = {}
    for field in schema:
        values[field.name], astray = values_at(rows, field.name, shape.paths)
        for row, path in astray.items():
            raise SchemaError(
                f"row {first + row}: the field {path!r} must be a record with {field.name!r}, not "
                "a value"
            )
        kind = shape.logical.get(field.name)
        found = values[field.name] if kind is None else as_texts(values[field.name], kind)
        array, failed = column_of(found, field, first, kind)
        arrays.append(array)
        for row, phrase in failed.items():
            refused.setdefault(row, f"{field.name} {phrase}")

    def shown(row: int) -> tuple[None, bytes]:
        return None, raw_of_values({name: column[row] for name, column in values.items()})

    return Held(pa.RecordBatch.from_arrays(arrays, schema.names), refused, shown)


def rows_in(item: Any) -> int:
    """Return the number of rows in an item of an iterator; an estimate if it does not tell."""
    if not hasattr(item, "__arrow_c_stream__"):
        return 1
    return max(len(item), 1) if hasattr(item, "__len__") else ROWS_AT_ONCE


def _check_any(names: Iterable[str], schema: pa.Schema, source: str) -> None:
    """Raise SchemaError where all columns are optional and none of them is there."""
    if set(schema.names).isdisjoint(names):
        wanted, found = ", ".join(schema.names), ", ".join(map(str, names)) or "none"
        raise SchemaError(f"{source} has none of the columns {wanted}: it has {found}")


def as_mapping(row: Any, number: int) -> Mapping[str, Any]:
    """Return a row as a mapping by field name. number: of the row, for the InputError it raises."""
    if isinstance(row, Mapping):
        return row
    if is_record_class(type(row)):
        return {name: getattr(row, name) for name in field_names(type(row))}
    raise InputError(
        f"row {number} of the source is {row!r} ({type(row).__name__}): rows are mappings by field "
        "name, instances of a record class, or Arrow batches and tables"
    )

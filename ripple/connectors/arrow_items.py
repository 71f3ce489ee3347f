"""Arrow batches, tables, data frames and streams of batches, as columns of records."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.types as kinds

from ripple.connectors.coercion import check_columns
from ripple.connectors.record_columns import RecordColumns, check_any
from ripple.core.errors import InputError, SchemaError
from ripple.model.schema.nested import with_leaf_types
from ripple.model.schema.text_columns import is_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ripple.connectors.record_shape import RecordShape

_EXACT_MAX = 2.0**53  # a larger integer may be another one as a float

# Errors of values that Arrow has no type for; an integer may be too large for any.
_NO_ARROW = (pa.ArrowException, TypeError, ValueError, OverflowError)


def of_arrow(item: Any, schema: pa.Schema, shape: RecordShape) -> Iterator[RecordColumns]:
    """Yield the batches of a record batch, a table, or a readable stream of batches."""
    words = {pa.RecordBatch: "record batch", pa.Table: "table"}
    name = f"the {words.get(type(item), type(item).__name__)}"
    tops = [*schema.names, *(parts[0] for parts in shape.paths.values())]
    # Before its reader: DuckDB counts by a query, and a connection has one at a time.
    is_empty = hasattr(item, "__len__") and not len(item)
    reader = _reader_of(item, tops, name, schema)
    check_columns(reader.schema, schema, name, is_empty=is_empty, shape=shape)
    found = with_leaf_types(reader.schema, schema.names, name)
    check_any(found.names, schema, name)
    for batch in reader:
        _check_bytes(batch, tops, name)
        yield RecordColumns(batch, {}, None)


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
        # pandas and Arrow derive their errors for a type without an operation from the last one.
        with suppress(TypeError, ValueError, NotImplementedError):
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

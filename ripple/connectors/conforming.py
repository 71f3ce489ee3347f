"""Columns as they are found, brought to the declared types or refused by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.types as kinds

from ripple.errors import InputError, SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterable


def check_columns(found: pa.Schema, wanted: pa.Schema, source: str) -> None:
    """Raise SchemaError unless every wanted column is there, in a type that can be brought over.

    An optional one may be missing. Integers of any width, and timestamps, become int64 (timestamps
    as nanoseconds); integers and floats become float64; every form of text becomes string.
    """
    for field in wanted:
        index = found.get_all_field_indices(field.name)
        if len(index) > 1:
            raise SchemaError(f"{source} has column {field.name!r} {len(index)} times")
        if not index:
            check_absent(field, found.names, source)
        elif not _can_become(found.field(index[0]).type, field.type):
            raise SchemaError(
                f"column {field.name!r} of {source} is {found.field(index[0]).type}, "
                f"but the schema declares {field.type}"
            )


def check_absent(field: pa.Field, found: Iterable[object], source: str) -> None:
    """Raise SchemaError unless a column that is not there is optional."""
    if not field.nullable:
        listed = ", ".join(map(str, found)) or "none"
        raise SchemaError(f"{source} has no column {field.name!r}: it has {listed}")


def conformed(records: pa.RecordBatch, wanted: pa.Schema, source: str) -> pa.RecordBatch:
    """Return the wanted columns in the wanted types; a missing optional one is all none.

    Raises SchemaError as ``check_columns``, and InputError for a value that does not fit.
    """
    check_columns(records.schema, wanted, source)
    columns = []
    for field in wanted:
        if field.name not in records.schema.names:
            columns.append(pa.nulls(records.num_rows, field.type))
            continue
        column = records.column(field.name)
        try:
            if kinds.is_dictionary(column.type):
                column = column.dictionary_decode()
            if kinds.is_timestamp(column.type):
                column = column.cast(pa.timestamp("ns", column.type.tz))
            columns.append(column.cast(field.type))
        except pa.ArrowInvalid as error:
            raise InputError(f"column {field.name!r} of {source}: {error}") from error
    # Nullable all through: screening rejects what must not be null.
    return pa.RecordBatch.from_arrays(columns, wanted.names)


def _can_become(found: pa.DataType, wanted: pa.DataType) -> bool:
    if kinds.is_dictionary(found):
        found = found.value_type
    if wanted == pa.string():
        return bool(
            kinds.is_string(found) or kinds.is_large_string(found) or kinds.is_string_view(found)
        )
    if wanted == pa.int64():
        return bool(kinds.is_integer(found) or kinds.is_timestamp(found))
    if wanted == pa.float64():
        return bool(kinds.is_floating(found) or kinds.is_integer(found))
    return bool(kinds.is_boolean(found))

"""Mappings and instances of record classes, as columns of records."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from ripple.connectors.coercion import check_absent
from ripple.connectors.python_values import as_texts, column_of, has_path, values_at
from ripple.connectors.raw_record import raw_of_values
from ripple.connectors.record_columns import RecordColumns, check_any
from ripple.connectors.record_shape import arrow_schema_of
from ripple.core.errors import InputError, SchemaError
from ripple.model.records.members import field_names, is_record_class

if TYPE_CHECKING:
    from ripple.connectors.record_shape import RecordShape


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
        """Raise SchemaError if a required field is absent, or if all are."""
        if self._is_checked:
            return
        self._is_checked = True
        schema = arrow_schema_of(self._shape.schema.fields)
        for field in schema:
            if field.name not in self._names:
                check_absent(field, self._names, "the source")
        check_any(self._names, schema, "the source")


def of_rows(rows: Sequence[Mapping[str, Any]], shape: RecordShape, first: int) -> RecordColumns:
    """Convert rows, from number ``first`` of the source on, to columns."""
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

    return RecordColumns(pa.RecordBatch.from_arrays(arrays, schema.names), refused, shown)

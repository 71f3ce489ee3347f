"""A user's rows within a pipeline, as a record batch of declared fields."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from ripple.core.arguments import shown
from ripple.core.errors import PlanError, SchemaError
from ripple.model.pipeline.checks import check_result_field, type_text
from ripple.model.pipeline.nodes import Fields
from ripple.model.records import schema_of
from ripple.model.schema.arrow import from_arrow, to_arrow
from ripple.model.schema.columns import fitted
from ripple.model.schema.logical.fields import stored_fields
from ripple.model.schema.types import (
    KEY_TYPES,
    Bool,
    Bytes,
    Date,
    DateTime,
    Field,
    FieldType,
    Float,
    Int,
    Schema,
    String,
    Uuid,
    bare_type,
)

T = TypeVar("T")
CONSTANT_BYTES_MAX = 16 << 20  # of its columns in memory
_TYPES = (*KEY_TYPES, Float)
_KINDS: tuple[tuple[Any, FieldType], ...] = (
    ((bool, np.bool_), Bool()),  # before int, which a bool is
    ((int, np.integer), Int()),
    ((float, np.floating), Float()),
    (str, String()),
    (dt.datetime, DateTime()),  # before date, which a datetime is
    (dt.date, Date()),
    (uuid.UUID, Uuid()),
    ((bytes, bytearray), Bytes()),
)


def given_rows(name: str, table: Any) -> tuple[Fields, pa.RecordBatch]:
    """Return the fields of given rows, and the rows as a record batch. Raises PlanError."""
    given: Mapping[str, Any]
    if hasattr(table, "__arrow_c_stream__") or isinstance(table, pa.RecordBatch):
        arrow = _read(table)
        schema = _checked(lambda: from_arrow(arrow.schema, name=name))
        given = {one: _plain(arrow.column(one)) for one in arrow.column_names}
        members = [_may_be_null(one, arrow.column(one.name).null_count) for one in schema.fields]
    elif isinstance(table, (list, tuple)) and table:
        members, given = _of_rows(table)
    else:
        is_empty = isinstance(table, (list, tuple))
        what = "an empty list, which tells no fields" if is_empty else shown(table)
        raise PlanError(f"it takes an Arrow table, or a list of dicts or records, not {what}")
    for field in members:
        check_result_field(field.name)
        if not isinstance(bare_type(field.type), _TYPES):
            raise PlanError(
                f"{field.name!r} is {type_text(field.type)}, and a constant holds single values, "
                "such as numbers, texts and dates: leave it out"
            )
    rows = _batch(members, given)
    _check_size(rows.nbytes)
    return tuple(members), rows


def _read(given: Any) -> pa.Table:
    """Return given rows as a table. Raises PlanError before a stream of more is read to its end."""
    if isinstance(given, pa.RecordBatch):
        given = pa.table(given)
    reader = pa.RecordBatchReader.from_stream(given)
    batches, size = [], 0
    for batch in reader:
        size += batch.nbytes
        _check_size(size // 2)  # before it is copied; wide types may take twice as much
        batches.append(batch)
    return pa.Table.from_batches(batches, reader.schema)


def _check_size(size: int) -> None:
    if size > CONSTANT_BYTES_MAX:
        raise PlanError(
            f"its rows take {size >> 10:,} KiB, and at most {CONSTANT_BYTES_MAX >> 10:,} "
            "(CONSTANT_BYTES_MAX) are part of a pipeline: leave fields out, or read them as a "
            "table, with .table(...)"
        )


def _of_rows(rows: Sequence[Any]) -> tuple[list[Field], dict[str, list[Any]]]:
    """Return the fields of dicts or records, and their values by field."""
    kind = type(rows[0])
    if kind is not dict:
        for at, row in enumerate(rows):
            if type(row) is not kind:
                raise PlanError(f"row {at} is {shown(row)}, and row 0 a {kind.__name__}")
        try:
            members = list(_checked(lambda: schema_of(kind)).fields)
        except PlanError as error:
            raise PlanError(f"row 0 is {shown(rows[0])}: {error}") from None
        return members, {one.name: [getattr(row, one.name) for row in rows] for one in members}
    names = list(rows[0])
    for at, row in enumerate(rows):
        if type(row) is not dict or set(row) != set(names):
            raise PlanError(f"row {at} is {shown(row)}, and not a dict of {', '.join(names)}")
    given = {name: [row[name] for row in rows] for name in names}
    return [_field_of(name, values) for name, values in given.items()], given


def _field_of(name: str, values: Sequence[Any]) -> Field:
    """Return the field that values of dicts have. Raises PlanError."""
    first: FieldType | None = None
    for at, value in enumerate(values):
        if value is None:
            continue
        kind = next((kind for types, kind in _KINDS if isinstance(value, types)), None)
        if kind is None:
            way = "leave it out"
            if isinstance(value, decimal.Decimal):
                way = "records, and Arrow tables and frames, say how many digits decimals have"
            raise PlanError(
                f"row {at}: {name!r} is {shown(value)}, and a constant of dicts holds numbers, "
                f"texts, booleans, dates, times, UUIDs and bytes: {way}"
            )
        if kind != (first := first or kind):
            raise PlanError(
                f"row {at}: {name!r} is {type_text(kind)}, and {type_text(first)} in a row before: "
                "write all of them as one type"
            )
    if first is None:
        raise PlanError(f"{name!r} is null in each row, which tells no type: leave it out")
    return Field(name, first, optional=None in values)


def _may_be_null(field: Field, nulls: int) -> Field:
    """Return a column's field: most columns of Arrow are declared to be null, and are not."""
    return Field(field.name, bare_type(field.type), optional=bool(nulls))


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column of times in nanoseconds, as its field."""
    return column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column


def _checked(made: Callable[[], T]) -> T:
    """Return the result of a function. Raises PlanError where it raises SchemaError."""
    try:
        return made()
    except SchemaError as error:
        raise PlanError(str(error)) from error


def _batch(members: Sequence[Field], given: Mapping[str, Any]) -> pa.RecordBatch:
    """Return columns as a record batch of the fields' types. Raises PlanError."""
    arrays = []
    types = _checked(lambda: to_arrow(Schema("constant", stored_fields(members))))
    for field in members:
        try:
            found = fitted(given[field.name], bare_type(field.type), f"the field {field.name!r}")
        except SchemaError as error:
            raise PlanError(str(error)) from error
        for row, reason in found.misfits.items():
            raise PlanError(f"row {row}: {reason}")
        is_list = isinstance(found.values, list)
        null = None if found.valid is None or is_list else ~found.valid
        array = pa.array(found.values, types.field(field.name).type, mask=null)
        if array.null_count and not field.optional:
            at = np.flatnonzero(np.asarray(array.is_null()))[0]
            raise PlanError(
                f"row {at}: the field {field.name!r} is null, and declared without None"
            )
        arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, [field.name for field in members])

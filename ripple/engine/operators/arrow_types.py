"""Arrow types of fields, and columns in them, as the engine reads and writes them."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from ripple.core.errors import SchemaError
from ripple.model.expression.bound import Values
from ripple.model.schema.arrow import to_arrow
from ripple.model.schema.columns import decoded, fitted
from ripple.model.schema.logical.fields import has_time, stored_fields
from ripple.model.schema.logical.showing import note_of
from ripple.model.schema.types import Field, Schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt


def arrow_fields(fields: Iterable[Field]) -> list[pa.Field]:
    """Return Arrow fields with the types of ``fields``; any of them may hold nulls.

    Nullability is not part of it: a forbidden null makes its row a dead letter.
    """
    return list(_arrow_fields(tuple(fields)))


def shown_fields(fields: Iterable[Field]) -> list[pa.Field]:
    """Return Arrow fields with the types that Spark has for ``fields``, as ``arrow_fields``.

    Its timestamps have microseconds, so that times stay nanoseconds.
    """
    known = tuple(fields)
    dated, plain = to_arrow(Schema("row", known)), arrow_fields(known)
    return [
        pa.field(one.name, own.type if has_time(field.type) else one.type)
        for one, own, field in zip(dated, plain, known, strict=True)
    ]


@lru_cache(maxsize=256)  # the parts of an engine ask for the same ones
def _arrow_fields(fields: tuple[Field, ...]) -> tuple[pa.Field, ...]:
    declared = to_arrow(Schema("row", stored_fields(fields))) if fields else ()
    return tuple(
        pa.field(column.name, column.type, metadata=note_of(field.type))
        for field, column in zip(fields, declared, strict=True)
    )


def conformed(batch: pa.RecordBatch, fields: Sequence[Field]) -> pa.RecordBatch:
    """Return the columns of ``fields`` in their types; raises SchemaError for lossy casts."""
    arrays = []
    for field, wanted in zip(fields, arrow_fields(fields), strict=True):
        column = batch.column(field.name)
        if pt.is_dictionary(column.type):
            column = decoded(column)
        if wanted.type == pa.string() and pt.is_large_string(column.type):
            column = column.cast(pa.string())
        if column.type != wanted.type:
            found = fitted(column, field.type, f"the field {field.name!r}")
            for reason in found.misfits.values():
                raise SchemaError(reason)
            null = None if found.valid is None or isinstance(found.values, list) else ~found.valid
            column = pa.array(found.values, wanted.type, mask=null)
        arrays.append(column)
    return pa.RecordBatch.from_arrays(arrays, [field.name for field in fields])


def null_rows(columns: Iterable[pa.Array]) -> npt.NDArray[np.bool_] | None:
    """Return the rows with a null in any of the columns; None if there are none."""
    nulls = [one.is_null().to_numpy(zero_copy_only=False) for one in columns if one.null_count]
    found: npt.NDArray[np.bool_] | None = np.logical_or.reduce(nulls) if nulls else None
    return found


def arrow_column(column: Any, kind: pa.DataType) -> pa.Array:
    """Return a column of rows, of any form, as Arrow's."""
    if isinstance(column, Values):
        array, valid = column.values, column.valid
        if not isinstance(array, pa.Array):
            return pa.array(array, kind, mask=None if valid is None else ~valid)
        if valid is not None:
            import pyarrow.compute as pc  # noqa: PLC0415 - slow to import, and seldom needed

            array = pc.if_else(pa.array(valid), array, pa.scalar(None, array.type))
        column = array
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    if not isinstance(column, pa.Array):
        column = pa.array(column, kind)
    return column if column.type == kind else column.cast(kind)

"""Encoding of records as bodies of frames: one Arrow IPC stream of the topic's columns."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from ripple.core.codec import arrow
from ripple.core.codec.errors import EncodingError
from ripple.core.errors import SchemaError
from ripple.model.schema.arrow import to_arrow
from ripple.model.schema.logical.fields import stored_fields
from ripple.model.schema.well_formed import check_text
from ripple.storage.log.frame import NO_TIME_NS, FrameError, body_of
from ripple.storage.log.salvage import UNREADABLE, lost, salvaged

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.model.batch import Rejected
    from ripple.model.schema.types import Schema
    from ripple.storage.log.frame import Header


@lru_cache(maxsize=64)
def columns_of(schema: Schema) -> pa.Schema:
    """Return the Arrow schema of a topic's frames, without metadata (the topic file has that).

    Raises SchemaError naming a field whose frames could not be read back.
    """
    bare = to_arrow(replace(schema, fields=stored_fields(schema.fields))).remove_metadata()
    columns = pa.schema([field.remove_metadata() for field in bare])
    try:
        arrow.check_types(columns)
    except EncodingError as error:
        raise SchemaError(f"schema {schema.name} is not for a log: {error}") from error
    return columns


def conformed(records: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
    """Return ``records`` with exactly ``columns``, cast where nothing is lost.

    Raises SchemaError naming the field that is missing, of another type, none where it must not be,
    or not UTF-8: readers would reject this frame and all later ones.
    """
    if not records.schema.equals(columns):
        missing = [name for name in columns.names if name not in records.schema.names]
        if missing:
            raise SchemaError(f"the records lack {missing}: they have {records.schema.names}")
        try:
            chosen = [
                records.column(field.name).cast(field.type)
                if records.schema.field(field.name).type != field.type
                else records.column(field.name)
                for field in columns
            ]
        except pa.ArrowException as error:
            raise SchemaError(f"the records do not have the topic's types: {error}") from error
        records = pa.RecordBatch.from_arrays(chosen, schema=columns)
    for field, column in zip(columns, records.columns, strict=True):
        if not field.nullable and column.null_count:
            raise SchemaError(f"field {field.name!r} is none in {column.null_count} records")
    check_text(records)
    return records


def dumps(records: pa.RecordBatch, notes: Mapping[str, str] | None = None) -> memoryview:
    """Return the body of ``records``, with ``notes`` as its custom metadata."""
    return memoryview(arrow.dumps(records, notes))


def notes_of(body: memoryview) -> dict[str, str]:
    """Return the notes of a body that ``read`` accepted."""
    return arrow.notes_of(body)


def read(
    header: Header, data: bytes, at: int, columns: pa.Schema
) -> tuple[pa.RecordBatch, tuple[Rejected, ...]]:
    """Return the records of a checked frame, sharing its memory, and the unreadable ones.

    Raises FrameError when its columns are not the topic's.
    """
    try:
        raw = body_of(header, data, at)
    except FrameError as error:
        return lost(columns, header, f"{UNREADABLE}: {error}")
    try:
        records = arrow.loads(raw, columns)
    except EncodingError as error:
        return salvaged(raw, columns, header, FrameError(str(error)))
    if records.num_rows != header.record_count:
        why = f"{records.num_rows} records where the header says {header.record_count}"
        return salvaged(raw, columns, header, FrameError(why))
    return records, ()


def times_of(records: pa.RecordBatch, time_field: str | None) -> tuple[int, int]:
    """Return the smallest and the largest event time, NO_TIME_NS twice when there is none."""
    if time_field is None:
        return NO_TIME_NS, NO_TIME_NS
    extremes = pc.min_max(records.column(time_field)).as_py()
    if extremes["min"] is None:
        return NO_TIME_NS, NO_TIME_NS
    return extremes["min"], extremes["max"]

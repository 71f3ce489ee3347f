"""Record batches as Arrow IPC streams, read without trusting the sender.

A body is an Arrow IPC stream (https://arrow.apache.org/docs/format/Columnar.html) of exactly one
schema and one record batch, without dictionaries and without Arrow's own body compression:
frames compress as a whole, within bounds (:mod:`ripple.core.codec.compression`). After a batch has
been read, every offset, length, validity bit and UTF-8 string in it has been checked.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.types as pt

from ripple.core.codec.errors import EncodingError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.core.codec import Buffer

NESTING_MAX = 8

_PLAIN = (
    pt.is_boolean,
    pt.is_integer,
    pt.is_floating,
    pt.is_decimal128,  # exact sums of integers, on their way to the next stage
    pt.is_string,
    pt.is_large_string,
    pt.is_binary,
    pt.is_large_binary,
    # Any other zone is a name that a reader may not know.
    lambda kind: pt.is_timestamp(kind) and kind.tz in (None, "UTC"),
)
# Where the flatbuffers Message keeps its header, and RecordBatch its compression.
_MESSAGE_HEADER, _BATCH_COMPRESSION = 2, 3
# Else Arrow looks into the environment, each time, for how it should write.
_WRITING = pa.ipc.IpcWriteOptions()


def dumps(batch: pa.RecordBatch, notes: Mapping[str, str] | None = None) -> pa.Buffer:
    """Return the body that carries ``batch``; ``notes`` go with it, as its custom metadata."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=_WRITING) as writer:
        writer.write_batch(batch, custom_metadata=notes or None)
    return sink.getvalue()


def notes_of(body: Buffer) -> dict[str, str]:
    """Return the notes of a body that ``loads`` has read."""
    with pa.ipc.open_stream(_aligned(body)) as reader:
        metadata = reader.read_next_batch_with_custom_metadata().custom_metadata
    return {key.decode(): value.decode() for key, value in dict(metadata or {}).items()}


def check_types(schema: pa.Schema) -> None:
    """Raise :class:`EncodingError` naming the first column that ``loads`` would not take."""
    for field in schema:
        _check_type(field.type, field.name, NESTING_MAX)


def loads(
    body: Buffer, schema: pa.Schema | None = None, *, has_nulls: bool = False
) -> pa.RecordBatch:
    """Return the batch in ``body``, which must have ``schema`` if one is given.

    has_nulls: columns may be of the type null, without values or their type.
    Raises :class:`EncodingError` for any defect of the bytes.
    """
    try:
        return _read(_aligned(body), schema, has_nulls)
    except EncodingError:
        raise
    except Exception as error:  # Arrow has no common root of what malformed bytes make it raise
        raise EncodingError(f"malformed Arrow bytes: {error}") from error


def _aligned(body: Buffer) -> pa.Buffer:
    # A frame begins at any byte of a buffer, but Arrow's loops want aligned words.
    buffer = pa.py_buffer(body)
    return buffer if buffer.address % 8 == 0 else pa.py_buffer(bytes(body))


def _read(body: pa.Buffer, schema: pa.Schema | None, has_nulls: bool) -> pa.RecordBatch:
    source = pa.BufferReader(body)
    announced = _next(source, "schema")
    found = pa.ipc.read_schema(announced)
    _check_schema(found, schema, has_nulls)
    message = _next(source, "record batch")
    if _table_field(memoryview(message.metadata), _MESSAGE_HEADER, _BATCH_COMPRESSION):
        raise EncodingError("the Arrow body is compressed; compress the frame instead")
    batch = pa.ipc.read_record_batch(message, found)
    # Each row of an allowed type takes a bit at least; without columns a count costs nothing.
    if batch.num_rows > 8 * body.size:
        raise EncodingError(f"{batch.num_rows} rows in {body.size} bytes")
    batch.validate(full=True)
    _check_end(source)
    return batch


def _next(source: pa.BufferReader, kind: str) -> pa.ipc.Message:
    message = pa.ipc.read_message(source)
    if message.type != kind:
        raise EncodingError(f"an Arrow {kind} was expected, not a {message.type}")
    return message


def _check_end(source: pa.BufferReader) -> None:
    rest = source.read()
    if rest not in (b"", b"\xff\xff\xff\xff\0\0\0\0"):
        raise EncodingError(f"{len(rest)} bytes follow the Arrow record batch")


def _check_schema(found: pa.Schema, wanted: pa.Schema | None, has_nulls: bool) -> None:
    if wanted is not None and not found.equals(wanted):
        raise EncodingError(f"the columns are not as announced: {_difference(found, wanted)}")
    # Within other types nothing would bound how many nulls there are.
    check_types(pa.schema([f for f in found if not (has_nulls and pt.is_null(f.type))]))


def _difference(found: pa.Schema, wanted: pa.Schema) -> str:
    if found.names != wanted.names:
        return f"{', '.join(found.names)} instead of {', '.join(wanted.names)}"
    return "; ".join(
        f"{have} instead of {want}"
        for have, want in zip(found, wanted, strict=True)
        if not have.equals(want)
    )


def _check_type(kind: pa.DataType, name: str, depth: int) -> None:
    if depth == 0:
        raise EncodingError(f"{name}: nested deeper than {NESTING_MAX} (NESTING_MAX)")
    if pt.is_list(kind) or pt.is_large_list(kind):
        _check_type(kind.value_type, f"{name}[]", depth - 1)
    elif pt.is_struct(kind) and kind.num_fields:
        for field in kind:
            _check_type(field.type, f"{name}.{field.name}", depth - 1)
    elif not any(is_kind(kind) for is_kind in _PLAIN):
        raise EncodingError(f"{name}: columns of type {kind} do not travel")


def _table_field(metadata: memoryview, *path: int) -> int:
    """Follow table fields by number in a flatbuffer; 0 if one is absent.

    A table starts with the (signed) distance back to its vtable: two bytes of the vtable's own
    size, two of the table's, then for each field its place in the table, 0 when absent.
    """
    at = _number("<I", metadata, 0)
    for number in path:
        vtable = at - _number("<i", metadata, at)
        if 4 + 2 * number >= _number("<H", metadata, vtable):
            return 0
        place = _number("<H", metadata, vtable + 4 + 2 * number)
        if place == 0:
            return 0
        at += place
        at += _number("<I", metadata, at)
    return at


def _number(form: str, data: memoryview, at: int) -> int:
    return int(struct.unpack_from(form, data, at)[0])

"""Changes of a table as FlightData: new rows, then new values, in messages of bounded size.

A record batch of Barrage has columns of different lengths, empty if unchanged, which Arrow's
writers do not support: so its header is built here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import flatbuffers
import pyarrow as pa

from ripple.client.flight.barrage.columns import Parts, nbytes_of, parts_of, wire_schema
from ripple.client.flight.barrage.messages import UpdateMetadata, update_metadata
from ripple.client.flight.errors import FlightError, Why
from ripple.client.flight.messages.flight_pb2 import FlightData

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ripple.client.flight.barrage.messages import Options

# Below the 100 MiB that clients in Java accept.
MESSAGE_BYTES_MAX = 64 << 20
# The default message size.
_AIM_BYTES = 1 << 20
_ALIGNMENT = 8
_VERSION_5, _RECORD_BATCH = 4, 3
# An empty body, which protobuf would omit and clients in Java require.
_NO_BODY = b"\xc2\x3e\x00"


class Update:
    """An update: columns in the clients' types, of added rows and modified values.

    nbytes: approximate memory. messages: by options, of a shared update.
    """

    def __init__(
        self, metadata: UpdateMetadata, added: Sequence[pa.Array], modified: Sequence[pa.Array]
    ) -> None:
        self.metadata = metadata
        self.added = added
        self.modified = modified
        self.nbytes = nbytes_of(added) + nbytes_of(modified)
        self.messages: dict[Options, list[bytes]] = {}


def schema_message(schema: pa.Schema, options: Options) -> bytes:
    """Return the schema message that begins a stream."""
    message = memoryview(wire_schema(schema, as_list=options.as_list).serialize())
    data: bytes = FlightData(data_header=bytes(message[8:])).SerializeToString()
    return data


def messages_of(update: Update, options: Options) -> Iterator[bytes]:
    """Yield an update: metadata with the first message, added rows before modified values.

    Raises FlightError for a row above the client's message size.
    """
    about = update_metadata(update.metadata)
    for columns in (update.added, update.modified):
        for batch in _sliced(columns, options):
            yield _message(batch, about)
            about = b""
    if about:
        empty = [array[:0] for array in update.added]
        yield _message(_all_parts(empty, 0, 0, options), about)


def _sliced(columns: Sequence[pa.Array], options: Options) -> Iterator[list[Parts]]:
    limit = MESSAGE_BYTES_MAX
    if options.message_bytes > 0:
        limit = min(limit, options.message_bytes)
    total = max((len(array) for array in columns), default=0)
    rows = options.batch_rows if options.batch_rows > 0 else total
    if not options.batch_rows:
        rows = _AIM_BYTES * total // max(1, nbytes_of(columns))
    begin = 0
    while begin < total:
        rows = max(1, min(rows, total - begin))
        parts = _all_parts(columns, begin, rows, options)
        taken = sum(part.nbytes + _ALIGNMENT * len(part.buffers) for part in parts)
        if taken <= limit:
            yield parts
            begin += rows
        elif rows > 1:
            rows //= 2
        else:
            raise FlightError(
                Why.TOO_MUCH, f"a row takes {taken} bytes of a message, and the client {limit}"
            )


def _all_parts(columns: Sequence[pa.Array], begin: int, rows: int, options: Options) -> list[Parts]:
    return [
        parts_of(array[begin : begin + rows], sentinels=options.sentinels, as_list=options.as_list)
        for array in columns
    ]


def _message(parts: list[Parts], about: bytes) -> bytes:
    body: list[bytes] = []
    places: list[tuple[int, int]] = []
    at = 0
    for part in parts:
        for buffer in part.buffers:
            places.append((at, len(buffer)))
            padding = -len(buffer) % _ALIGNMENT
            body += (buffer, bytes(padding))
            at += len(buffer) + padding
    nodes = [node for part in parts for node in part.nodes]
    rows = max((part.rows for part in parts), default=0)
    data: bytes = FlightData(
        data_header=_header(rows, nodes, places, at), app_metadata=about, data_body=b"".join(body)
    ).SerializeToString()
    return data if at else data + _NO_BODY


def _header(
    rows: int, nodes: list[tuple[int, int]], places: list[tuple[int, int]], length: int
) -> bytes:
    """Return the header of a record batch."""
    builder = flatbuffers.Builder(256 + 16 * (len(nodes) + len(places)))
    vectors = []
    for pairs in (places, nodes):
        builder.StartVector(16, len(pairs), 8)
        for first, second in reversed(pairs):
            builder.PrependInt64(second)
            builder.PrependInt64(first)
        vectors.append(builder.EndVector())
    builder.StartObject(3)
    builder.PrependInt64Slot(0, rows, 0)
    builder.PrependUOffsetTRelativeSlot(1, vectors[1], 0)
    builder.PrependUOffsetTRelativeSlot(2, vectors[0], 0)
    batch = builder.EndObject()
    builder.StartObject(4)
    builder.PrependInt64Slot(3, length, 0)
    builder.PrependUOffsetTRelativeSlot(2, batch, 0)
    builder.PrependInt16Slot(0, _VERSION_5, 0)
    builder.PrependUint8Slot(1, _RECORD_BATCH, 0)
    builder.Finish(builder.EndObject())
    return bytes(builder.Output())

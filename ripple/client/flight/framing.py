"""Arrow IPC messages as FlightData (header and body apart), and back, validated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from ripple.client.flight.errors import FlightError, Why
from ripple.client.flight.messages.flight_pb2 import FlightData
from ripple.core.codec import arrow
from ripple.core.codec.errors import EncodingError

if TYPE_CHECKING:
    from collections.abc import Iterator

# The message size that clients accept by default.
DATA_BYTES = 1 << 20
_MARK = b"\xff\xff\xff\xff"
_PREFIX_BYTES = 8


def schema_bytes(schema: pa.Schema) -> bytes:
    """Return a schema as in GetSchema and FlightInfo: a whole IPC message."""
    return bytes(schema.serialize())


def frames(table: pa.Table, about: bytes = b"") -> Iterator[FlightData]:
    """Yield a table: its schema, then batches of about ``DATA_BYTES``.

    about: application metadata, sent with the schema.
    """
    header, _ = _split(table.schema.serialize())
    yield FlightData(data_header=header, app_metadata=about)
    rows = max(1, DATA_BYTES * table.num_rows // max(1, table.nbytes))
    for batch in table.to_batches(max_chunksize=rows):
        header, body = _split(
            pa.RecordBatch.from_arrays(batch.columns, schema=batch.schema).serialize()
        )
        yield FlightData(data_header=header, data_body=body)


class Batches:
    """Decodes the messages of one stream of an untrusted client; holds only the schema.

    has_nulls: columns may have the type null.
    """

    def __init__(self, *, has_nulls: bool = False) -> None:
        self._schema = b""
        self._has_nulls = has_nulls

    def take(self, data: FlightData) -> pa.RecordBatch | None:
        """Return a message's batch; None for a schema or an empty message.

        Raises FlightError.
        """
        if not data.data_header:
            return None
        message = _joined(data.data_header, data.data_body)
        if not self._schema:
            self._schema = message
            return None
        try:
            return arrow.loads(self._schema + message, has_nulls=self._has_nulls)
        except EncodingError as error:
            raise FlightError(Why.WRONG, f"the data cannot be read: {error}") from error


def _split(message: pa.Buffer) -> tuple[bytes, bytes]:
    """Return the parts of an IPC message: metadata and body."""
    view = memoryview(message)
    length = int.from_bytes(view[4:_PREFIX_BYTES], "little")
    end = _PREFIX_BYTES + length
    return bytes(view[_PREFIX_BYTES:end]), bytes(view[end:])


def _joined(header: bytes, body: bytes) -> bytes:
    padding = b"\0" * (-len(header) % 8)
    length = (len(header) + len(padding)).to_bytes(4, "little")
    return b"".join((_MARK, length, header, padding, body))

"""Columnar deltas as bytes: an Arrow IPC stream of one batch, which any Arrow reader opens.

Columns in which nothing changed are left out of the stream and come back as unchanged. Decoding
copies no values: the batch lies in the buffer it was read from.
"""

from __future__ import annotations

from typing import TypeAlias

import pyarrow as pa

from ripple.delta.layout import CLEARED, OP, Batch, Layout
from ripple.errors import DeltaError, LimitError

Data: TypeAlias = bytes | bytearray | memoryview | pa.Buffer

ROWS_MAX = 1 << 20
"""Rows of one batch. A column left out costs no bytes, but does cost memory once it is back."""


def encode(batch: Batch) -> pa.Buffer:
    """Return the bytes of a batch of deltas."""
    sink = pa.BufferOutputStream()
    batch = _without_idle_columns(batch)
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def decode(layout: Layout, data: Data, *, rows_max: int = ROWS_MAX) -> Batch:
    """Return the batch of deltas that ``data`` holds, with all columns of the layout.

    The bytes may come from anywhere: offsets, lengths and text are checked before any use.
    Raises :class:`DeltaError` for bytes that are no such stream or deltas of another layout, and
    :class:`ripple.errors.LimitError` for more than ``rows_max`` rows.
    """
    try:
        batch = _only_batch(layout, data)
        if batch.num_rows > rows_max:
            raise LimitError(
                f"a batch of {batch.num_rows} deltas exceeds rows_max={rows_max}: "
                "send smaller batches, or raise the limit on this side"
            )
        batch.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DeltaError(f"these bytes are no batch of deltas: {error}") from error
    return layout.conform(batch)


def _without_idle_columns(batch: Batch) -> Batch:
    names = batch.schema.names
    idle = {
        name
        for name in names
        if batch.num_rows and name != OP and batch.column(name).null_count == batch.num_rows
    }
    idle |= {
        name for name in names if name.startswith(CLEARED) and batch.column(name).true_count == 0
    }
    return batch.select([name for name in names if name not in idle]) if idle else batch


def _only_batch(layout: Layout, data: Data) -> Batch:
    messages = [*pa.ipc.MessageReader.open_stream(pa.py_buffer(data))]
    # Dictionaries would come as messages of their own, and no layout has them.
    if [message.type for message in messages] != ["schema", "record batch"]:
        kinds = ", ".join(message.type for message in messages)
        raise DeltaError(f"expected a schema and one record batch, found: {kinds or 'nothing'}")
    head, body = messages
    schema = pa.ipc.read_schema(head)
    layout.check_columns(schema)
    if is_compressed(body.metadata):
        raise DeltaError("the buffers of the batch are compressed; compress frames instead")
    return pa.ipc.read_record_batch(body, schema)


def is_compressed(metadata: Data) -> bool:
    """Tell whether a record batch message says that its buffers are compressed.

    They would be inflated while they are read, to whatever size they claim. The message is a
    flatbuffer (Arrow's Message.fbs): its table's third field is the header, here a RecordBatch,
    whose fourth field is the compression.
    """
    data = memoryview(metadata).cast("B")
    message = _u32(data, 0)
    header = _field(data, message, 2)
    if header == 0:
        raise DeltaError("a message without a header")
    return _field(data, header + _u32(data, header), 3) != 0


def _field(data: memoryview, table: int, number: int) -> int:
    """Return the position of a flatbuffer table's field; 0 when it has none."""
    vtable = table - int.from_bytes(_slice(data, table, 4), "little", signed=True)
    slot = 4 + 2 * number
    if slot + 2 > int.from_bytes(_slice(data, vtable, 2), "little"):
        return 0
    offset = int.from_bytes(_slice(data, vtable + slot, 2), "little")
    return table + offset if offset else 0


def _u32(data: memoryview, at: int) -> int:
    return int.from_bytes(_slice(data, at, 4), "little")


def _slice(data: memoryview, at: int, size: int) -> memoryview:
    if not 0 <= at <= len(data) - size:
        raise DeltaError(f"a message points to {at}, outside its {len(data)} bytes")
    return data[at : at + size]

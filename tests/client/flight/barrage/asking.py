"""What clients ask, in bytes: written here field by field, as they would."""

from __future__ import annotations

import flatbuffers

from ripple.client.flight.barrage.messages import wrapped
from ripple.client.flight.messages.flight_pb2 import FlightData

SUBSCRIPTION, SNAPSHOT, PUBLICATION = 5, 7, 8


def request(
    ticket: bytes = b"s/live",
    *,
    kind: int = SUBSCRIPTION,
    columns: bytes | None = None,
    viewport: bytes | None = None,
    reverse: bool = False,
    as_list: bool = True,
    interval_ms: int = 0,
    batch_rows: int = 0,
    message_bytes: int = 0,
    conversion: int = 0,
) -> bytes:
    """Return a message of a stream that asks for a table."""
    builder = flatbuffers.Builder(256)
    vectors = {
        field: builder.CreateByteVector(value)
        for field, value in ((0, ticket), (1, columns), (2, viewport))
        if value is not None
    }
    once = kind == SNAPSHOT
    builder.StartObject(7)
    builder.PrependInt8Slot(0, conversion, 0)
    builder.PrependBoolSlot(1, True, False)
    builder.PrependInt32Slot(2 if once else 3, batch_rows, 0)
    builder.PrependInt32Slot(3 if once else 4, message_bytes, 0)
    if not once:
        builder.PrependInt32Slot(2, interval_ms, 0)
        builder.PrependBoolSlot(5, as_list, False)
    options = builder.EndObject()
    builder.StartObject(6)
    for field, vector in vectors.items():
        builder.PrependUOffsetTRelativeSlot(field, vector, 0)
    builder.PrependUOffsetTRelativeSlot(3, options, 0)
    builder.PrependBoolSlot(4, reverse, False)
    builder.Finish(builder.EndObject())
    about = wrapped(kind, bytes(builder.Output()))
    data: bytes = FlightData(app_metadata=about).SerializeToString()
    return data

"""Outputs as ticking tables, for unmodified clients of Deephaven: Barrage over Arrow Flight.

rowset        sets of row numbers, and their encoding
messages      metadata of messages, as flatbuffers
columns       types, nulls and buffers of columns, as clients expect them
batches       changes of a table as messages of bounded size
rows          a table with stable row numbers
subscription  the rows that a subscriber has, and its updates
feed          outputs with subscribers
session       sessions: tokens, tables by ticket
exchange      one DoExchange stream: subscriptions and updates
service       all other calls of clients
server        the service over gRPC
gateway       Barrage as a part of the gateway

A row keeps its number as long as its key lives, so rows never shift, and an update is the
difference of two versions, row by row. A subscriber is at the version that it was sent last;
subscribers do not affect each other.

``deephaven_pb2`` is generated from ``proto/`` by ``make protos``.
"""

from __future__ import annotations

from ripple.core.extras import needed

with needed("barrage", "Barrage"):
    import flatbuffers  # noqa: F401 - needed for every message

"""Outputs as ticking tables, for unmodified clients of Deephaven: Barrage over Arrow Flight.

rowset        sets of row numbers, and their bytes
messages      the metadata of a message, as flatbuffers
columns       columns as those clients know them: types, nulls, buffers
batches       changes of a table as messages, none too large
rows          a table whose rows keep their numbers
subscription  what one subscriber has been told, and what is news to it
feed          outputs, followed while somebody subscribes
session       who has come in: tokens, tables by ticket
exchange      one stream: what is asked for, what is sent and when
service       the calls that clients make besides
server        all of it over gRPC

A row keeps its number as long as its key lives, so nothing is ever shifted, and an update is what
differs between two versions, row by row. A subscriber is one version: what it was told last. How
often it takes news, and how fast, is nobody else's matter.

``deephaven_pb2`` is generated from ``proto/`` by ``make protos``.
"""

from __future__ import annotations

from ripple.core.extras import needed

with needed("barrage", "Barrage"):
    import flatbuffers  # noqa: F401 - what every message is made with

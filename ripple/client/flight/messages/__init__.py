"""Messages between clients of Arrow Flight and a gateway.

Modules that end in ``_pb2`` are generated from ``proto/`` by ``make protos``, never edited.
"""

from __future__ import annotations

from ripple.core.extras import needed

with needed("cluster", "Arrow Flight"):
    import google.protobuf  # noqa: F401 - what the generated modules need

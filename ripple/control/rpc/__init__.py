"""What processes of a cluster say to each other, as messages of gRPC.

methods      what can be called
words        what workers and coordinators say to each other, as values
messages     these values as bytes, and back
reading      bytes of others, read with care

Modules that end in ``_pb2`` are generated from ``proto/`` by ``make protos``, never edited.
"""

from __future__ import annotations

from ripple.core.extras import needed

with needed("cluster", "the control channel"):
    import google.protobuf  # noqa: F401 - what the generated modules need

"""Messages of the control channel between processes of a cluster, over gRPC.

methods               names of the coordinator's methods
membership_messages   messages between workers and coordinators, as values
mapping               dataclasses as protobuf and back, by names and types of their fields
messages              the membership messages as bytes

Modules that end in ``_pb2`` are generated from ``proto/`` by ``make protos``, never edited.
"""

from __future__ import annotations

from ripple.core.extras import needed

with needed("cluster", "the control channel"):
    import google.protobuf  # noqa: F401 - what the generated modules need

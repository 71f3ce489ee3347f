"""Events that a link reports to its caller, in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ripple.exchange.wire.edge_messages import EdgeMessage
from ripple.exchange.wire.errors import RemoteProtocolError
from ripple.exchange.wire.messages import CheckpointAck, CheckpointRequest, Heartbeat, Reason
from ripple.model.schema.types import Schema


@dataclass(frozen=True, slots=True)
class PeerOffered:
    """The peer's handshake was accepted, with these outputs."""

    worker_id: str
    outputs: tuple[tuple[str, Schema], ...]
    capabilities: frozenset[str]


@dataclass(frozen=True, slots=True)
class PeerAccepted:
    """The peer accepted our outputs: we may send them."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The connection is rejected, by the peer or by us; ``errors`` were sent to the other side."""

    by_peer: bool
    errors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Received:
    """A message that the link only carries; of a Bundle, the columns fit the edge's schema."""

    message: Heartbeat | CheckpointRequest | CheckpointAck | EdgeMessage


@dataclass(frozen=True, slots=True)
class PeerLeft:
    """The peer sends nothing more; it still receives until our goodbye."""

    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True)
class Ended:
    """The last event of a link: close the transport. ``error`` is None after an orderly end."""

    error: RemoteProtocolError | None


Event: TypeAlias = PeerOffered | PeerAccepted | Refused | Received | PeerLeft | Ended

"""What a link reports to its caller, in the order in which it happened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ripple.schema.types import Schema
from ripple.wire.edge_messages import EdgeMessage
from ripple.wire.errors import RemoteProtocolError
from ripple.wire.messages import (
    Changes,
    CheckpointAck,
    CheckpointRequest,
    Cut,
    Delta,
    Heartbeat,
    Reason,
    SnapshotBegin,
    SnapshotEnd,
)
from ripple.wire.position import Stream


@dataclass(frozen=True, slots=True)
class PeerOffered:
    """The peer's handshake was accepted: these are the outputs that it may send."""

    worker_id: str
    outputs: tuple[tuple[str, Schema], ...]
    capabilities: frozenset[str]


@dataclass(frozen=True, slots=True)
class PeerAccepted:
    """The peer accepted our outputs: we may send them, as credit allows."""


@dataclass(frozen=True, slots=True)
class Refused:
    """The connection is rejected, by the peer or by us; ``errors`` were told to the other side."""

    by_peer: bool
    errors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChangesReceived:
    """Apply the changes: they start where the table stands, and bring it to their to-cut.

    Give ``credit_bytes`` back with ``grant_credit`` once they are applied.
    """

    stream: Stream
    changes: Changes
    credit_bytes: int


@dataclass(frozen=True, slots=True)
class SnapshotStarted:
    """Begin a second table beside the first; Adopted or Dropped follows, also if all breaks."""

    stream: Stream
    begin: SnapshotBegin


@dataclass(frozen=True, slots=True)
class SnapshotRows:
    """Put the rows into the second table, then give ``credit_bytes`` back."""

    stream: Stream
    changes: Changes
    credit_bytes: int


@dataclass(frozen=True, slots=True)
class SnapshotAdopted:
    """The second table is complete and takes the place of the first.

    ``end`` has the rows and the digest to hold it against; ``request_snapshot`` if they differ.
    """

    stream: Stream
    end: SnapshotEnd


@dataclass(frozen=True, slots=True)
class SnapshotDropped:
    """Throw the second table away; the first stays as it is."""

    stream: Stream
    reason: str


@dataclass(frozen=True, slots=True)
class GapFound:
    """The changes do not start where we stand, or a new owner sent them: a snapshot is due.

    It was asked for; ``from_cut`` and ``to_cut`` are those of the changes.
    """

    stream: Stream
    ours: Cut | None
    from_cut: Cut | None
    to_cut: Cut


@dataclass(frozen=True, slots=True)
class StaleEpochRefused:
    """A superseded owner spoke; nothing was taken, and it was told the epoch that we follow."""

    stream: Stream
    epoch: int
    ours: int


@dataclass(frozen=True, slots=True)
class SnapshotWanted:
    """The peer cannot follow the stream: begin a snapshot of it."""

    stream: Stream


@dataclass(frozen=True, slots=True)
class Superseded:
    """The peer follows a higher epoch of the stream than we sent: stop, and check ownership."""

    stream: Stream
    epoch: int


@dataclass(frozen=True, slots=True)
class CreditReceived:
    """The peer takes more of the stream: ``available_bytes`` in all."""

    stream: Stream
    available_bytes: int


@dataclass(frozen=True, slots=True)
class DeltaReceived:
    """One key's change from a peer that knows types 0 to 5 only."""

    delta: Delta


@dataclass(frozen=True, slots=True)
class SequenceGap:
    """Deltas of such a peer were lost, and it cannot be asked for a snapshot.

    The output is incomplete until each key has changed again; the delta that showed the gap
    follows as an event of its own.
    """

    output: str
    expected: int
    seen: int


@dataclass(frozen=True, slots=True)
class Told:
    """A message that the link only carries; of a Bundle, the columns fit the edge's schema."""

    message: Heartbeat | CheckpointRequest | CheckpointAck | EdgeMessage


@dataclass(frozen=True, slots=True)
class PeerLeft:
    """The peer says nothing more; it still listens until we say goodbye too."""

    reason: Reason
    detail: str


@dataclass(frozen=True, slots=True)
class Ended:
    """The last event of a link: close the transport. ``error`` is None after an orderly end."""

    error: RemoteProtocolError | None


Event: TypeAlias = (
    PeerOffered
    | PeerAccepted
    | Refused
    | ChangesReceived
    | SnapshotStarted
    | SnapshotRows
    | SnapshotAdopted
    | SnapshotDropped
    | GapFound
    | StaleEpochRefused
    | SnapshotWanted
    | Superseded
    | CreditReceived
    | DeltaReceived
    | SequenceGap
    | Told
    | PeerLeft
    | Ended
)

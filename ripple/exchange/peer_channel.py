"""The contract of a channel to a process: over a link, or within this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ripple.engine.edges.edge_changes import EdgeChanges
    from ripple.exchange.edges import Stream
    from ripple.exchange.wire.edge_messages import Follow, Release, Unfollow


class PeerChannel(Protocol):
    """Carries messages to the partitions of one process. Channels are compared by identity."""

    @property
    def has_room(self) -> bool:
        """Whether the buffer has room for more."""

    def has(self, stream: Stream) -> bool:
        """Return whether changes of a stream wait here."""

    def send_changes(self, stream: Stream, turn: int, epoch: int, changes: EdgeChanges) -> None:
        """Send changes, or a table, to their target."""

    def drop(self, stream: Stream) -> None:
        """Drop the waiting changes of a stream."""

    def send(self, message: Follow | Unfollow | Release) -> None:
        """Send a message to a sender."""

    def return_credit(self, stream: Stream, turn: int, rows: int) -> None:
        """Return credit to a sender."""

"""The contract of a way to a process: over a link, or to ourselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ripple.engine.edges.edge_changes import EdgeChanges
    from ripple.exchange.edges import Stream
    from ripple.exchange.wire.edge_messages import Follow, Release, Unfollow


class PeerChannel(Protocol):
    """Takes what is for the partitions of one process. Ways are told apart by identity."""

    @property
    def has_room(self) -> bool:
        """Whether so little waits here that more may be taken for it."""

    def has(self, stream: Stream) -> bool:
        """Return whether something of a stream waits here."""

    def put(self, stream: Stream, turn: int, epoch: int, changes: EdgeChanges) -> None:
        """Take changes, or a table, to their target."""

    def drop(self, stream: Stream) -> None:
        """Forget what waits here of a stream."""

    def say(self, message: Follow | Unfollow | Release) -> None:
        """Take a message to a sender."""

    def grant(self, stream: Stream, turn: int, rows: int) -> None:
        """Give credit back to a sender."""

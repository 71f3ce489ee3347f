"""The contract between a life and those who follow its partition, or whom it follows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ripple.core.cut import Cut
    from ripple.engine.edges.edge_changes import EdgeChanges
    from ripple.engine.machine.partition import Partition


class Publisher(Protocol):
    """Gives what a partition has to those who follow it, when they may get more."""

    @property
    def is_wanted(self) -> bool:
        """Whether somebody waits for the next offer."""

    @property
    def is_owed(self) -> bool:
        """Whether somebody waits for an offer, unless the next commit brings one."""

    def trace(self, contexts: tuple[str, ...]) -> None:
        """Take the traces that what is offered next belongs to; see ``ripple.core.tracing``."""

    def offer(self, partition: Partition) -> None:
        """Take what may be sent now; all that the partition shows is committed."""

    def take(self, partition: Partition) -> None:
        """Take what may be sent once all that the partition shows now is committed.

        What was taken before was given.
        """

    def give(self) -> None:
        """Send what was taken: it is committed."""

    def offer_uncommitted(self, partition: Partition) -> None:
        """Take what may be sent before it is committed; the partition's views are up."""


class Arrival(Protocol):
    """What has come from a sender, by its number, under an epoch."""

    @property
    def sender(self) -> int:
        """Whose it is."""

    @property
    def epoch(self) -> int:
        """Of the sender's owner."""

    @property
    def changes(self) -> EdgeChanges:
        """Changes, or a whole table."""


A = TypeVar("A", bound=Arrival)


class Upstream(Protocol[A]):
    """Brings what the partitions of the stage before have; each arrival is answered once."""

    def begin(self, sender: int, epoch: int | None, cut: Cut | None) -> None:
        """Take note of what was restored of a sender, before ``find``."""

    async def find(self) -> None:
        """Find where to go on with each sender, before ``start``."""

    def start(self) -> None:
        """Follow all senders from now on."""

    def reached_before(self, sender: int) -> Cut | None:
        """Return to where lives before may have come of a sender, once it is followed.

        None where whatever comes first is as far.
        """

    def take(self) -> Sequence[A]:
        """Return what has arrived, in an order that keeps that of each sender."""

    async def sync(self) -> None:
        """Make durable what was taken, before anything that follows from it is shown."""

    def applied(self, arrival: A) -> None:
        """Take note that the partition has taken it in."""

    def refused(self, arrival: A) -> None:
        """Take note that it does not go on where the partition is; what does is asked for."""

    def dropped(self, arrival: A) -> None:
        """Take note that it is of an owner that is none any more."""

    def release(self, watermark_ns: int) -> None:
        """Let senders forget final rows up to here: they are in what is stored."""

"""The contract between a task and the ends of its edges: its subscribers, and its senders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ripple.core.cut import Cut
    from ripple.engine.edges.edge_changes import EdgeChanges
    from ripple.engine.machine.partition import Partition


class Publisher(Protocol):
    """Sends a partition's changes to its subscribers, as their credit allows."""

    @property
    def is_wanted(self) -> bool:
        """Whether a subscriber waits for the next offer."""

    @property
    def is_owed(self) -> bool:
        """Whether a subscriber waits for an offer, unless the next commit brings one."""

    def begin(self, partition: Partition) -> None:
        """Let a restored partition keep rows for subscribers, before it continues."""

    def trace(self, contexts: tuple[str, ...]) -> None:
        """Take the trace contexts of the next offer; see ``ripple.core.tracing``."""

    def offer(self, partition: Partition) -> None:
        """Take the changes that may be sent now; the partition's present state is committed."""

    def take(self, partition: Partition) -> None:
        """Take the changes to send once the partition's present state is committed.

        The changes taken before were given.
        """

    def give(self) -> None:
        """Send the changes taken: they are committed."""

    def offer_uncommitted(self, partition: Partition) -> None:
        """Take the changes that may be sent before they are committed; the views are stabilized."""


class Arrival(Protocol):
    """Changes that have arrived from a sender, by its number, under an epoch."""

    @property
    def sender(self) -> int:
        """The sender's number."""

    @property
    def epoch(self) -> int:
        """The epoch of the sender's owner."""

    @property
    def changes(self) -> EdgeChanges:
        """Changes, or a whole table."""


A = TypeVar("A", bound=Arrival)


class Upstream(Protocol[A]):
    """Brings the changes of the upstream stage's partitions; each arrival is answered once."""

    def begin(self, sender: int, epoch: int | None, cut: Cut | None) -> None:
        """Note the restored position of a sender, before ``find``."""

    async def find(self) -> None:
        """Find the position to resume from at each sender, before ``start``."""

    def start(self) -> None:
        """Follow all senders from now on."""

    def reached_before(self, sender: int) -> Cut | None:
        """Return the cut of a sender that earlier tasks may have reached, once it is followed.

        None where any first arrival is as far.
        """

    def take(self) -> Sequence[A]:
        """Return new arrivals, in an order that keeps that of each sender."""

    async def sync(self) -> None:
        """Make the arrivals taken durable, before results of them are shown."""

    def applied(self, arrival: A) -> None:
        """Note that the arrival was applied."""

    def refused(self, arrival: A) -> None:
        """Note that the arrival does not start at the partition's position; ask for another."""

    def dropped(self, arrival: A) -> None:
        """Note that the arrival is of a former owner."""

    def release(self, watermark_ns: int) -> None:
        """Let senders forget final rows up to here: they are in stored checkpoints."""

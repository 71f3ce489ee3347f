"""All publications of one partition: its edges to other stages, and its outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ripple.engine.machine.partition import Partition
    from ripple.exchange.limits import ExchangeLimits
    from ripple.exchange.publication import Publication, Published


class Publications:
    """The publications of a partition under one epoch.

    Only committed changes are offered, except to subscribers of uncommitted outputs, to whom the
    next owner sends its own table.
    """

    def __init__(
        self,
        edges: Sequence[Publication],
        shown: Sequence[Publication],
        limits: ExchangeLimits,
    ) -> None:
        """Publish ``edges``, one for each stage that follows, and the outputs ``shown``."""
        self._edges = edges
        self._limits = limits
        self._shown = [one for one in shown if not one.edge.is_uncommitted]
        self._uncommitted = [one for one in shown if one.edge.is_uncommitted]

    def __iter__(self) -> Iterator[Publication]:
        yield from self._committed()
        yield from self._uncommitted

    def _committed(self) -> Iterator[Publication]:
        yield from self._edges
        yield from self._shown

    @property
    def is_wanted(self) -> bool:
        """Whether a subscriber waits for the next offer of committed changes."""
        return any(publication.is_wanted for publication in self._committed())

    @property
    def is_owed(self) -> bool:
        """Whether a subscriber waits for an offer, unless the next commit brings one."""
        return any(publication.is_owed for publication in self._committed())

    @property
    def superseded_by(self) -> int | None:
        """The epoch of a later owner, if a subscriber has reported one."""
        found = (edge.superseded_by for edge in self._edges)
        return max((epoch for epoch in found if epoch is not None), default=None)

    def begin(self, partition: Partition) -> None:
        """Let a restored partition keep the newest rows of its outputs of events."""
        for publication in self._shown:
            edge = publication.edge
            if edge.is_events and edge.output is not None:
                partition.keep_newest(
                    edge.output, self._limits.newest_rows, self._limits.newest_bytes
                )

    def trace(self, contexts: tuple[str, ...]) -> None:
        """Set the trace contexts of the next offer."""
        for publication in self._committed():
            publication.trace(contexts)

    def offer(self, partition: Partition) -> None:
        """Offer the present state, all of which is committed."""
        self.take(partition)
        self.give()

    def take(self, partition: Partition) -> None:
        """Take the changes up to the present state, to be sent by ``give`` once it is committed."""
        for edge in self._edges:
            edge.take(partition.sending(edge.edge.stage))
        for publication in self._shown:
            if not publication.is_idle:
                publication.take(_showing(partition, publication))

    def give(self) -> None:
        """Send the taken changes."""
        for publication in self._committed():
            publication.give()

    def offer_uncommitted(self, partition: Partition) -> None:
        """Offer the present state to subscribers of uncommitted outputs."""
        for publication in self._uncommitted:
            if not publication.is_idle:
                publication.offer(_showing(partition, publication))


def _showing(partition: Partition, publication: Publication) -> Published:
    assert publication.edge.output is not None
    if publication.edge.is_events:
        return partition.showing_events(publication.edge.output)
    return partition.showing(publication.edge.output, uncommitted=publication.edge.is_uncommitted)

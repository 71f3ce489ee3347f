"""All that one partition gives to others: over its edge to the next stage, and its outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ripple.engine.machine.output_stream import OutputStream
    from ripple.engine.machine.partition import Partition
    from ripple.exchange.publication import Publication


class Publications:
    """What a partition sends under one epoch.

    Only what is committed is offered, but to those who follow outputs uncommitted: whoever comes
    next begins there with its own table.
    """

    def __init__(self, edge: Publication | None, shown: Sequence[Publication]) -> None:
        """Send over ``edge``, None where none leads out, and the outputs that are ``shown``."""
        self.edge = edge
        self._shown = [one for one in shown if not one.edge.is_uncommitted]
        self._uncommitted = [one for one in shown if one.edge.is_uncommitted]

    def __iter__(self) -> Iterator[Publication]:
        yield from self._committed()
        yield from self._uncommitted

    def _committed(self) -> Iterator[Publication]:
        if self.edge is not None:
            yield self.edge
        yield from self._shown

    @property
    def is_wanted(self) -> bool:
        """Whether somebody waits for the next offer of what is committed."""
        return any(sending.is_wanted for sending in self._committed())

    @property
    def is_owed(self) -> bool:
        """Whether somebody waits for an offer, unless the next commit brings one."""
        return any(sending.is_owed for sending in self._committed())

    @property
    def superseded_by(self) -> int | None:
        """The epoch of a later owner, if one of the next stage has heard of it."""
        return None if self.edge is None else self.edge.superseded_by

    def trace(self, contexts: tuple[str, ...]) -> None:
        """Take the traces that what is offered next belongs to."""
        for sending in self._committed():
            sending.trace(contexts)

    def offer(self, partition: Partition) -> None:
        """Let those who may get more get it; all that the partition shows is committed."""
        self.take(partition)
        self.give()

    def take(self, partition: Partition) -> None:
        """Take what those may get who may get more, once what is shown now is committed."""
        if self.edge is not None:
            self.edge.take(partition)
        for sending in self._shown:
            if not sending.is_idle:
                sending.take(_showing(partition, sending))

    def give(self) -> None:
        """Let them get what was taken."""
        for sending in self._committed():
            sending.give()

    def offer_uncommitted(self, partition: Partition) -> None:
        """Let those who do not wait for commits get what the partition shows."""
        for sending in self._uncommitted:
            if not sending.is_idle:
                sending.offer(_showing(partition, sending))


def _showing(partition: Partition, sending: Publication) -> OutputStream:
    assert sending.edge.output is not None
    return partition.showing(sending.edge.output, uncommitted=sending.edge.is_uncommitted)

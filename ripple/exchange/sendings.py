"""All that one partition gives to others: over its edge to the next stage, and its outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ripple.engine.partition import Partition
    from ripple.exchange.sending import Sending


class Sendings:
    """What a partition sends under one epoch. Only what is committed is offered."""

    def __init__(self, edge: Sending | None, shown: Mapping[str, Sending]) -> None:
        """Send over ``edge``, None where none leads out, and by name the outputs it ``shown``."""
        self.edge = edge
        self._shown = shown

    def __iter__(self) -> Iterator[Sending]:
        if self.edge is not None:
            yield self.edge
        yield from self._shown.values()

    @property
    def is_wanted(self) -> bool:
        """Whether somebody waits for the next offer."""
        return any(sending.is_wanted for sending in self)

    @property
    def is_followed(self) -> bool:
        """Whether somebody must be offered each cut: those outside, only while they are there."""
        return self.edge is not None or any(not one.is_idle for one in self._shown.values())

    @property
    def superseded_by(self) -> int | None:
        """The epoch of a later owner, if one of the next stage has heard of it."""
        return None if self.edge is None else self.edge.superseded_by

    def trace(self, contexts: tuple[str, ...]) -> None:
        """Take the traces that what is offered next belongs to."""
        for sending in self:
            sending.trace(contexts)

    def offer(self, partition: Partition) -> None:
        """Let those who may get more get it; all that the partition shows is committed."""
        if self.edge is not None:
            self.edge.offer(partition)
        for output, sending in self._shown.items():
            sending.offer(partition.showing(output))

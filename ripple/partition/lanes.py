"""The contract between a life and the log through which the next stage reads what it has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ripple.engine.partition import Partition
    from ripple.partition.group import Standing


class Lanes(Protocol):
    """Where a partition's rows go that those of the next stage read: more of its outputs.

    Like outputs they know what they have committed, and nothing is written to them that they have.
    Unlike them they are given nothing before a commit: then all since the last one, at once.
    """

    async def open(self, epoch: int | None) -> Mapping[str, Standing]:
        """Become the only writer, and return what each lane has committed. Raises as opening."""
        ...

    def pass_by(self, partition: Partition, lanes: Collection[str]) -> None:
        """Take from a partition what these have already."""
        ...

    async def commit(self, partition: Partition, lanes: Collection[str]) -> None:
        """Write to these what is new, and let it survive with the cut that it reaches."""
        ...

    async def close(self) -> None:
        """Release the lanes. Closing twice is allowed."""
        ...

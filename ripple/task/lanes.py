"""The contract between a life and the log through which the next stage reads what it has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ripple.connectors.commit_group import OutputStatus
    from ripple.connectors.contract import Commit
    from ripple.engine.machine.partition import Partition

_PREFIX = "ripple.lane/"


def lane_name(target: int) -> str:
    """Return what a life calls the lane to a target, beside its outputs."""
    return f"{_PREFIX}{target}"


def is_lane(output: str) -> bool:
    """Return whether a life calls a lane so."""
    return output.startswith(_PREFIX)


class Lanes(Protocol):
    """Where a partition's rows go that those of the next stage read: more of its outputs.

    Like outputs they know what they have committed, and nothing is written to them that they have.
    Unlike them they are given nothing before a commit: then all since the last one, at once.
    """

    @property
    def commits_beside(self) -> bool:
        """Whether the partition may go on while what was taken from it is committed."""
        ...

    async def open(
        self, epoch: int | None, standings: Mapping[str, OutputStatus]
    ) -> Mapping[str, OutputStatus]:
        """Become the only writer, and return what each lane has committed. Raises as opening.

        standings: what the outputs have returned, among them lanes that are committed with them.
        """
        ...

    def pass_by(self, partition: Partition, lanes: Collection[str]) -> None:
        """Take from a partition what these have already."""
        ...

    def take(self, partition: Partition, lanes: Collection[str]) -> Mapping[str, Commit]:
        """Take what is new for these, before a commit of the outputs.

        Return what those reach that are committed with them, as outputs of their group.
        """
        ...

    async def commit(self) -> None:
        """Let what was taken survive with the cut that it reaches, behind the outputs."""
        ...

    async def close(self) -> None:
        """Release the lanes. Closing twice is allowed."""
        ...

"""The contract between a task and the lanes to the next stage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ripple.connectors.commit_group import OutputStatus
    from ripple.connectors.contract import Commit
    from ripple.engine.machine.partition import Partition

_PREFIX = "ripple.lane/"


def lane_name(target: int) -> str:
    """Return the name of the lane to a target, among the names of a task's outputs."""
    return f"{_PREFIX}{target}"


def is_lane(output: str) -> bool:
    """Return whether this is the name of a lane."""
    return output.startswith(_PREFIX)


class Lanes(Protocol):
    """A partition's lanes to the next stage: more of its outputs.

    Like outputs they know their committed cut, and do not write rows before it again. Unlike
    outputs they receive rows at a commit only: all since the last one, at once.
    """

    @property
    def commits_beside(self) -> bool:
        """Whether the partition may run while the changes taken from it are committed."""
        ...

    async def open(
        self, epoch: int | None, standings: Mapping[str, OutputStatus]
    ) -> Mapping[str, OutputStatus]:
        """Become the only writer, and return the committed cut of each lane. Raises as opening.

        standings: of the outputs, among them lanes that are committed with them.
        """
        ...

    def pass_by(self, partition: Partition, lanes: Collection[str]) -> None:
        """Take from a partition the rows that these have already."""
        ...

    def take(self, partition: Partition, lanes: Collection[str]) -> Mapping[str, Commit]:
        """Take new changes for these lanes, before a commit of the outputs.

        Return the commits of lanes that are outputs of their group.
        """
        ...

    async def commit(self) -> None:
        """Make the changes taken durable with their cut, after the outputs."""
        ...

    async def close(self) -> None:
        """Release the lanes. Closing twice is allowed."""
        ...

"""One version of the assignment: a value, the same for all readers."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING

from ripple.control.assignment.errors import AssignmentError
from ripple.control.assignment.member import Member, worker_of

if TYPE_CHECKING:
    from collections.abc import Iterable

PARTITIONS_MAX = 8_192  # a version of them fits into an entry of a chain


class Phase(Enum):
    """Phase of a partition's planned move."""

    OWNED = "owned"  # no move
    WARMING = "warming"  # the next owner replays, muted; the owner is not disturbed
    SWITCHING = "switching"  # the next owner has it, and is not known to be live yet


@dataclass(frozen=True, slots=True)
class Share:
    """The owner of a partition: a process, since a version.

    next: the target of its move. former: the owner before the move, which may have it back as long
    as its owner is not live. standby: the process that follows it all the time, and gets it if its
    owner is gone. None: no process. At most one of next and former is set.
    """

    owner: str | None
    since: int
    next: str | None = None
    former: str | None = None
    standby: str | None = None

    @property
    def phase(self) -> Phase:
        """Phase of its move."""
        if self.next is not None:
            return Phase.WARMING
        return Phase.OWNED if self.former is None else Phase.SWITCHING

    @property
    def target(self) -> str | None:
        """Its owner once its move is done, for which it counts."""
        return self.owner if self.next is None else self.next


@dataclass(frozen=True, slots=True)
class Pin:
    """A partition that stays with a worker as long as that is a member, by command."""

    partition: int
    worker: str
    reason: str


@dataclass(frozen=True, slots=True)
class Stage:
    """A stage and its number of partitions. They are numbered through, in stage order.

    by: the fields by which it divides a source anew, joined by commas; "" for another stage, and
    where an earlier release began the cluster.
    """

    name: str
    partitions: int
    by: str = ""


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """Version ``version`` of the assignment; its rules: ``ripple.control.assignment.rules``.

    cause: why it differs from the one before, for people. members: by id, sorted. shares: by
    partition. pins: by partition, sorted. frozen: why no partition moves; None when they may.
    inputs: how many partitions each has, by name, sorted.
    """

    version: int
    cause: str
    stages: tuple[Stage, ...]
    shares: tuple[Share, ...]
    members: tuple[Member, ...] = ()
    pins: tuple[Pin, ...] = ()
    frozen: str | None = None
    inputs: tuple[tuple[str, int], ...] = field(default=())

    @cached_property
    def by_id(self) -> dict[str, Member]:
        """The members by id."""
        return {member.id: member for member in self.members}

    @cached_property
    def processes(self) -> tuple[str, ...]:
        """All processes of all members."""
        return tuple(process for member in self.members for process in member.processes)

    def has(self, worker: str, incarnation: int) -> bool:
        """Return whether this incarnation of a worker is a member."""
        member = self.by_id.get(worker)
        return member is not None and member.incarnation == incarnation

    def start_of(self, process: str) -> tuple[int, int] | None:
        """Return the present run of a process: its worker's incarnation, and its own start."""
        return self._starts.get(process)

    @cached_property
    def _starts(self) -> dict[str, tuple[int, int]]:
        return {
            process: (member.incarnation, start)
            for member in self.members
            for process, start in zip(member.processes, member.starts, strict=True)
        }

    def owned_by(self, worker: str) -> tuple[int, ...]:
        """Return the partitions of a worker's processes."""
        return tuple(
            partition
            for partition, share in enumerate(self.shares)
            if share.owner is not None and worker_of(share.owner) == worker
        )

    def place_of(self, partition: int) -> tuple[str, int]:
        """Return the stage of a partition, and its number there."""
        left = partition
        for stage in self.stages:
            if left < stage.partitions:
                return stage.name, left
            left -= stage.partitions
        raise AssignmentError(f"there is no partition {partition}, of {len(self.shares)}")

    def partition_of(self, stage: str, number: int) -> int:
        """Return the number in the assignment of a stage's partition: the inverse of place_of."""
        before = itertools.takewhile(lambda one: one.name != stage, self.stages)
        return sum(one.partitions for one in before) + number

    def with_members(self, members: Iterable[Member]) -> Assignment:
        """Return this version with other members, sorted."""
        return replace(self, members=tuple(sorted(members, key=lambda member: member.id)))


def empty(stages: Iterable[Stage]) -> Assignment:
    """Return the version before the first: no members, no owners."""
    stages = tuple(stages)
    shares = (Share(None, 0),) * sum(stage.partitions for stage in stages)
    return Assignment(version=0, cause="", stages=stages, shares=shares)

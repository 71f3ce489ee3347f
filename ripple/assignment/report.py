"""What a member says of itself with each heartbeat."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Follower:
    """A process follows a partition that is to move to it; so many commits behind."""

    partition: int
    process: str
    behind: int


@dataclass(frozen=True, slots=True)
class MoveFailed:
    """A process cannot take over a partition."""

    partition: int
    process: str
    reason: str


@dataclass(frozen=True, slots=True)
class Report:
    """How a member is. load: 0 to 1. starts: how often each of its processes was started again.

    live: (partition, since) of those that its processes own and have caught up with. inputs: how
    many partitions each input has, by name, sorted.
    """

    load: float = 0.0
    starts: tuple[int, ...] = ()
    live: frozenset[tuple[int, int]] = frozenset()
    followers: tuple[Follower, ...] = ()
    failed: tuple[MoveFailed, ...] = ()
    inputs: tuple[tuple[str, int], ...] = ()

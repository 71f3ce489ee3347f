"""What a member says of itself with each heartbeat."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


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


class Level(IntEnum):
    """What is done about queues that fill: more with each."""

    NORMAL = 0
    WARN = 1
    SLOW = 2
    PAUSE = 3


@dataclass(frozen=True, slots=True, order=True)
class Backpressure:
    """How full the fullest queue is, 0 to 1, and what is done about it; "" where nothing waits."""

    level: Level = Level.NORMAL
    fill: float = 0.0
    queue: str = ""


@dataclass(frozen=True, slots=True)
class Alert:
    """Something that somebody should look at, by the name of its rule, for so many seconds now.

    severity: warning or critical. cause: in words.
    """

    name: str
    severity: str
    cause: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Report:
    """How a member is. load: 0 to 1. starts: how often each of its processes was started again.

    live: (partition, since) of those that its processes own and have caught up with. inputs: how
    many partitions each input has, by name, sorted. backpressure: of the process that has most.
    alerts: what fires.
    """

    load: float = 0.0
    starts: tuple[int, ...] = ()
    live: frozenset[tuple[int, int]] = frozenset()
    followers: tuple[Follower, ...] = ()
    failed: tuple[MoveFailed, ...] = ()
    inputs: tuple[tuple[str, int], ...] = ()
    backpressure: Backpressure = Backpressure()
    alerts: tuple[Alert, ...] = ()

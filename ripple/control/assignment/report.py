"""A member's report with each heartbeat."""

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
    """Backpressure levels, each with a stronger reaction."""

    NORMAL = 0
    WARN = 1
    SLOW = 2
    PAUSE = 3


@dataclass(frozen=True, slots=True, order=True)
class Backpressure:
    """Fill of the fullest queue, 0 to 1, and the reaction to it; "" without a queue."""

    level: Level = Level.NORMAL
    fill: float = 0.0
    queue: str = ""


@dataclass(frozen=True, slots=True)
class Alert:
    """A firing alert, by the name of its rule, for so many seconds now.

    severity: warning or critical. cause: in words.
    """

    name: str
    severity: str
    cause: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Report:
    """A member's health. load: 0 to 1. starts: how often each of its processes was restarted.

    live: (partition, since) of the partitions that its processes own and have caught up with.
    inputs: how many partitions each input has, by name, sorted. backpressure: of the fullest
    process. alerts: those that fire.
    """

    load: float = 0.0
    starts: tuple[int, ...] = ()
    live: frozenset[tuple[int, int]] = frozenset()
    followers: tuple[Follower, ...] = ()
    failed: tuple[MoveFailed, ...] = ()
    inputs: tuple[tuple[str, int], ...] = ()
    backpressure: Backpressure = Backpressure()
    alerts: tuple[Alert, ...] = ()

"""A member's report with each heartbeat."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, TypeAlias

from ripple.control.assignment.bounds import (
    REASON_LENGTH_MAX,
    AtMost,
    Counts,
    Growing,
    Name,
    Partition,
    Reason,
    Share,
)
from ripple.control.assignment.member import SLOTS_MAX
from ripple.control.assignment.version import PARTITIONS_MAX

SECONDS_MAX = 1e12
ALERTS_MAX = 64  # of one member, each by its rule
LINES_MAX = 50  # of one member's log, of the last seconds
_EACH = AtMost(PARTITIONS_MAX)
Seconds: TypeAlias = Annotated[float, AtMost(SECONDS_MAX)]


@dataclass(frozen=True, slots=True)
class Follower:
    """A process follows a partition that is to move to it; so many commits behind."""

    partition: Partition
    process: Name
    behind: Growing


@dataclass(frozen=True, slots=True)
class MoveFailed:
    """A process cannot take over a partition."""

    partition: Partition
    process: Name
    reason: Annotated[str, AtMost(REASON_LENGTH_MAX, cut=500)]


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
    fill: Share = 0.0
    queue: Name = ""


@dataclass(frozen=True, slots=True)
class Alert:
    """A firing alert, by the name of its rule, for so many seconds now.

    severity: warning or critical. cause: in words.
    """

    name: Name
    severity: Name
    cause: Reason
    seconds: Seconds


@dataclass(frozen=True, slots=True)
class Line:
    """A warning or an error in the log of a process. number: of the line, from its start on."""

    time_ms: Growing
    number: Growing
    level: Name
    process: Name
    text: Reason


@dataclass(frozen=True, slots=True)
class Demand:
    """How much a member has to do, for a choice of the number of workers.

    busy: mean CPU share of its processes, 0 to 1. backlog_s: for how long one of its partitions has
    not come to the end of its input; 0 if all have, lately. debt_s: for how long a partition has
    had committed records in no checkpoint, which its next owner replays. Both are the longest.
    live: how many partitions it owns and has caught up with.
    """

    busy: Share = 0.0
    backlog_s: Seconds = 0.0
    debt_s: Seconds = 0.0
    live: Annotated[int, AtMost(PARTITIONS_MAX)] = 0


@dataclass(frozen=True, slots=True)
class Report:
    """A member's health. load: 0 to 1. starts: how often each of its processes was restarted.

    live: (partition, since) of the partitions that its processes own and have caught up with.
    inputs: how many partitions each input has, by name, sorted. backpressure: of the fullest
    process. alerts: firing ones. demand: on its processes. lines: warnings and errors of the last
    seconds.
    """

    load: Share = 0.0
    starts: Annotated[tuple[int, ...], AtMost(SLOTS_MAX)] = ()
    live: Annotated[frozenset[tuple[Partition, int]], _EACH] = frozenset()
    followers: Annotated[tuple[Follower, ...], _EACH] = ()
    failed: Annotated[tuple[MoveFailed, ...], _EACH] = ()
    inputs: Counts = ()
    backpressure: Backpressure = Backpressure()
    alerts: Annotated[tuple[Alert, ...], AtMost(ALERTS_MAX)] = ()
    demand: Demand = Demand()
    lines: Annotated[tuple[Line, ...], AtMost(LINES_MAX)] = ()

"""How full a worker's queues are, and what that means for its intake.

Every queue has a name and a limit. The fullest counts, from 0 to 1: from 0.6 on the worker warns,
from 0.8 on it takes in less, at 0.95 nothing. An intake that was paused goes on only below 0.8, so
that it does not stop and start with every record.

Invariants: a level never falls while a queue fills; what is taken in never grows with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

from ripple.errors import LimitError

if TYPE_CHECKING:
    from collections.abc import Iterable


class Level(IntEnum):
    """What is done about it: more with each."""

    NORMAL = 0
    WARN = 1
    SLOW = 2
    PAUSE = 3


@dataclass(frozen=True, slots=True)
class Queue:
    """So much of ``limit`` is held, in whatever unit; ``name`` is also its setting's."""

    name: str
    held: int
    limit: int

    def __post_init__(self) -> None:
        if self.limit <= 0 or self.held < 0:
            raise LimitError(f"queue {self.name} holds {self.held} of {self.limit}")

    @property
    def fill(self) -> float:
        """How full it is: from 0 to 1."""
        return min(1.0, self.held / self.limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """From how full on a worker warns, slows down and pauses."""

    warn_threshold: float = 0.6
    slow_threshold: float = 0.8
    pause_threshold: float = 0.95

    def __post_init__(self) -> None:
        if not 0 < self.warn_threshold < self.slow_threshold < self.pause_threshold <= 1:
            raise LimitError(
                f"warn_threshold {self.warn_threshold}, slow_threshold {self.slow_threshold} and "
                f"pause_threshold {self.pause_threshold} must rise, within 0 and 1"
            )

    def level_of(self, fill: float, before: Level = Level.NORMAL) -> Level:
        """Return the level of a queue that is so full, where it was at ``before``."""
        if fill >= self.pause_threshold:
            return Level.PAUSE
        if fill >= self.slow_threshold:
            return Level.PAUSE if before is Level.PAUSE else Level.SLOW
        return Level.WARN if fill >= self.warn_threshold else Level.NORMAL

    def intake_of(self, fill: float, level: Level) -> float:
        """Return which share of its usual intake a worker takes: less and less while it slows."""
        if level is Level.PAUSE:
            return 0.0
        left = (self.pause_threshold - fill) / (self.pause_threshold - self.slow_threshold)
        return max(0.0, min(1.0, left))


DEFAULT = Thresholds()


@dataclass(frozen=True, slots=True)
class Pressure:
    """The pressure on a worker: of its fullest queue, whose name is "" where there is none."""

    level: Level = Level.NORMAL
    fill: float = 0.0
    queue: str = ""
    intake: float = 1.0

    def after(self, queues: Iterable[Queue], thresholds: Thresholds = DEFAULT) -> Pressure:
        """Return the pressure that follows from how full the queues are now."""
        fullest = max(queues, key=lambda queue: (queue.fill, queue.name), default=None)
        if fullest is None:
            return Pressure()
        level = thresholds.level_of(fullest.fill, self.level)
        intake = thresholds.intake_of(fullest.fill, level)
        return Pressure(level, fullest.fill, fullest.name, intake)

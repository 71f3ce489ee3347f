"""How full a worker's queues are, and what that means for its intake.

Every queue has a name and a limit. The fullest counts, from 0 to 1: from 0.6 on the worker warns,
from 0.8 on it takes in less, at 0.95 nothing. An intake that was paused goes on only below 0.8, so
that it does not stop and start with every record.

Invariants: a level never falls while a queue fills; what is taken in never grows with it.

What waits for a slow receiver of a state edge is bounded by its connection's window, and then the
engine notes what changed: so it takes many slow connections to slow an intake down. Checkpoints are
no queue: each partition has at most one under way.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from ripple.control.assignment import Backpressure, Level
from ripple.core.errors import LimitError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ripple.world.ports import Clock

    Held = Callable[[], Mapping[str, int]]

LOOK_NS = 20_000_000  # how often it is looked how full queues are
PAUSE_S = 0.02
WAIT_S_MAX = 1.0


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

    def __str__(self) -> str:
        """Say what it means, for people."""
        does = ("all is taken in", "all is taken in", "less is taken in", "nothing is taken in")
        return f"{self.queue or 'no queue'} is {self.fill:.0%} full: {does[self.level]}"

    @property
    def report(self) -> Backpressure:
        """Return what others are told of it."""
        return Backpressure(self.level, self.fill, self.queue)

    def after(self, queues: Iterable[Queue], thresholds: Thresholds = DEFAULT) -> Pressure:
        """Return the pressure that follows from how full the queues are now."""
        fullest = max(queues, key=lambda queue: (queue.fill, queue.name), default=None)
        if fullest is None:
            return Pressure()
        level = thresholds.level_of(fullest.fill, self.level)
        intake = thresholds.intake_of(fullest.fill, level)
        return Pressure(level, fullest.fill, fullest.name, intake)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Of the queues of a process, by name.

    outboxes: bytes that wait to be sent to other processes. divided: bytes of records that were
    divided anew, until they are committed. uncommitted: rows written since commits.
    """

    outboxes: int = 256 << 20
    divided: int = 256 << 20
    uncommitted: int = 16 << 20


class Intake:
    """What a process takes in, by how full its queues are now."""

    def __init__(
        self,
        clock: Clock,
        *,
        limits: Limits | None = None,
        thresholds: Thresholds = DEFAULT,
        changed: Callable[[Pressure], None] = lambda _: None,
    ) -> None:
        """Know of no queue yet. changed: told when the level has changed."""
        self.pressure = Pressure()
        self._clock = clock
        self._limit_of = asdict(limits or Limits())
        self._thresholds = thresholds
        self._changed = changed
        self._held: dict[Gate | None, Held] = {}
        self._looked_ns: int | None = None

    def watch(self, held: Held) -> None:
        """Look at what the whole process holds, by the names of Limits."""
        self._held[None] = held

    def gate(self, held: Held) -> Gate:
        """Return what a partition asks before it takes in more; ``close`` it at the end."""
        gate = Gate(self, self._clock)
        self._held[gate] = held
        return gate

    def leave(self, gate: Gate) -> None:
        """Forget what a partition holds."""
        self._held.pop(gate, None)

    @property
    def queues(self) -> tuple[Queue, ...]:
        """How full each queue is, of all partitions together."""
        held = dict.fromkeys(self._limit_of, 0)
        for one in self._held.values():
            for name, count in one().items():
                held[name] += count
        return tuple([Queue(name, held[name], limit) for name, limit in self._limit_of.items()])

    def look(self) -> Pressure:
        """Return the pressure, which is looked at anew now and then."""
        now_ns = self._clock.monotonic_ns()
        if self._looked_ns is None or now_ns - self._looked_ns >= LOOK_NS:
            self._looked_ns, before = now_ns, self.pressure.level
            self.pressure = self.pressure.after(self.queues, self._thresholds)
            if self.pressure.level is not before:
                self._changed(self.pressure)
        return self.pressure


class Gate:
    """Where one partition asks; see ``ripple.task.loop.IntakeGate``."""

    def __init__(self, intake: Intake, clock: Clock) -> None:
        self._intake = intake
        self._clock = clock
        self._began_ns: int | None = None

    async def admits(self) -> bool:
        """Return whether more may be taken in; who slows down rests in proportion to its work."""
        now = self._intake.look()
        if now.level is Level.PAUSE:
            self._began_ns = None
            await self._clock.sleep(PAUSE_S)
            return False
        if now.level is Level.SLOW and self._began_ns is not None:
            worked_s = (self._clock.monotonic_ns() - self._began_ns) / 1e9
            share = max(now.intake, worked_s / (worked_s + WAIT_S_MAX))
            await self._clock.sleep(worked_s / share - worked_s if share else 0)
        self._began_ns = self._clock.monotonic_ns()
        return True

    def close(self) -> None:
        """Let the partition hold nothing any more."""
        self._intake.leave(self)

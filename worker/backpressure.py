"""Backpressure: fill levels of a worker's queues, and the intake that follows from them.

Every queue has a name and a limit. The fullest counts, from 0 to 1: the worker warns from 0.6 on,
reduces its intake from 0.8 on and pauses it at 0.95. A paused intake resumes only below 0.8, so
that it does not stop and start with every record.

Invariants: a level never falls while a queue fills; the intake never grows with it.

Changes that wait for a slow receiver of a state edge are bounded by its connection's window; beyond
it, the engine only notes changed keys. So it takes many slow connections to reduce an intake.
Checkpoints are no queue: each partition has at most one in progress.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from ripple.control.assignment import Backpressure, Level
from ripple.core.errors import LimitError
from ripple.core.setting import Alias, setting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from ripple.world.ports import Clock

    Logical = Callable[[], Mapping[str, int]]

LOOK_NS = 20_000_000  # period at which fill levels are measured again
PAUSE_S = 0.02
WAIT_S_MAX = 1.0


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue that holds ``held`` of ``limit``, in its own unit; ``name`` is also its setting's."""

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


def _threshold(name: str, help_text: str, default: float) -> Any:
    place = Alias(f"cluster.defaults.backpressure.{name}")
    return setting(help_text, default=default, places=(place,))


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """Fill levels at which a worker warns, slows down and pauses."""

    warn_threshold: float = _threshold(
        "warn_threshold", "fill of the fullest queue, 0 to 1, from which the worker warns", 0.6
    )
    slow_threshold: float = _threshold(
        "slow_threshold",
        "fill from which partitions of the first stage reduce their intake, and below which "
        "paused ones resume",
        0.8,
    )
    pause_threshold: float = _threshold(
        "pause_threshold", "fill from which they pause their intake", 0.95
    )

    def __post_init__(self) -> None:
        if not 0 < self.warn_threshold < self.slow_threshold < self.pause_threshold <= 1:
            raise LimitError(
                f"warn_threshold {self.warn_threshold}, slow_threshold {self.slow_threshold} and "
                f"pause_threshold {self.pause_threshold} must rise, within 0 and 1"
            )

    def level_of(self, fill: float, before: Level = Level.NORMAL) -> Level:
        """Return the level at this fill, given the level before."""
        if fill >= self.pause_threshold:
            return Level.PAUSE
        if fill >= self.slow_threshold:
            return Level.PAUSE if before is Level.PAUSE else Level.SLOW
        return Level.WARN if fill >= self.warn_threshold else Level.NORMAL

    def intake_of(self, fill: float, level: Level) -> float:
        """Return the share of the usual intake, 0 to 1; it falls as the queue fills."""
        if level is Level.PAUSE:
            return 0.0
        left = (self.pause_threshold - fill) / (self.pause_threshold - self.slow_threshold)
        return max(0.0, min(1.0, left))


DEFAULT = Thresholds()


@dataclass(frozen=True, slots=True)
class Pressure:
    """The pressure on a worker: that of its fullest queue, "" if there is none."""

    level: Level = Level.NORMAL
    fill: float = 0.0
    queue: str = ""
    intake: float = 1.0

    def __str__(self) -> str:
        """Describe the pressure in words."""
        does = ("all is taken in", "all is taken in", "less is taken in", "nothing is taken in")
        return f"{self.queue or 'no queue'} is {self.fill:.0%} full: {does[self.level]}"

    @property
    def report(self) -> Backpressure:
        """Return the part that heartbeats report."""
        return Backpressure(self.level, self.fill, self.queue)

    def after(self, queues: Iterable[Queue], thresholds: Thresholds = DEFAULT) -> Pressure:
        """Return the pressure that follows from the present fill levels."""
        fullest = max(queues, key=lambda queue: (queue.fill, queue.name), default=None)
        if fullest is None:
            return Pressure()
        level = thresholds.level_of(fullest.fill, self.level)
        intake = thresholds.intake_of(fullest.fill, level)
        return Pressure(level, fullest.fill, fullest.name, intake)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a process's queues, by name.

    outboxes: bytes waiting to be sent to other processes. divided: bytes of repartitioned records
    that are not committed yet. uncommitted: rows written since the last commits.
    """

    outboxes: int = 256 << 20
    divided: int = 256 << 20
    uncommitted: int = 16 << 20


class Intake:
    """The intake of one process, as its queues allow it."""

    def __init__(
        self,
        clock: Clock,
        *,
        limits: Limits | None = None,
        thresholds: Thresholds = DEFAULT,
        changed: Callable[[Pressure], None] = lambda _: None,
    ) -> None:
        """Start without queues. changed: called with the pressure when its level has changed."""
        self.pressure = Pressure()
        self._clock = clock
        self._limit_of = asdict(limits or Limits())
        self._thresholds = thresholds
        self._changed = changed
        self._held: dict[Gate | None, Logical] = {}
        self._looked_ns: int | None = None

    def watch(self, held: Logical) -> None:
        """Set the callback that measures the process's own queues, by the names of Limits."""
        self._held[None] = held

    def gate(self, held: Logical) -> Gate:
        """Return the intake gate of a partition; ``close`` it when the partition ends."""
        gate = Gate(self, self._clock)
        self._held[gate] = held
        return gate

    def leave(self, gate: Gate) -> None:
        """Remove a partition's gate and its counts."""
        self._held.pop(gate, None)

    @property
    def queues(self) -> tuple[Queue, ...]:
        """Fill of each queue, over all partitions."""
        held = dict.fromkeys(self._limit_of, 0)
        for one in self._held.values():
            for name, count in one().items():
                held[name] += count
        return tuple([Queue(name, held[name], limit) for name, limit in self._limit_of.items()])

    def look(self) -> Pressure:
        """Return the pressure, measured again once the last measurement is older than LOOK_NS."""
        now_ns = self._clock.monotonic_ns()
        if self._looked_ns is None or now_ns - self._looked_ns >= LOOK_NS:
            self._looked_ns, before = now_ns, self.pressure.level
            self.pressure = self.pressure.after(self.queues, self._thresholds)
            if self.pressure.level is not before:
                self._changed(self.pressure)
        return self.pressure


class Gate:
    """The intake gate of one partition; see ``ripple.task.spec.IntakeGate``."""

    def __init__(self, intake: Intake, clock: Clock) -> None:
        self._intake = intake
        self._clock = clock
        self._began_ns: int | None = None

    async def admits(self) -> bool:
        """Return whether to take in more; at level SLOW, sleep in proportion to the work done."""
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
        """Remove the partition's share of the queues."""
        self._intake.leave(self)

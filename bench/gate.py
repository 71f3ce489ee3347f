"""Whether a workload has become slower than the gate lets pass. No I/O.

Noise only adds to the processor time of a run, so the least of many is the cost of the work. A
process has its own noise, too (where its memory lies), so several pairs of processes are compared:
trials. A result is settled if no single process decides it, of either commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bench.table import aligned, figure

REGRESSION_RATIO = 2.0  # the book's: beyond it, a change is not let in
SLOWER_RATIO = 1.1  # what is told, since such small steps add up; noise is less
TITLES = ("workload", "before", "", "now", "", "ratio", "", "spread", "trials", "")


@dataclass(frozen=True, slots=True)
class Trial:
    """The least processor seconds of a run in one pair of processes, which took turns."""

    before_s: float
    now_s: float


@dataclass(frozen=True, slots=True)
class Extent:
    """How many trials: so many always, and more up to ``most`` while the result is not settled."""

    least: int
    most: int


FULL = Extent(least=4, most=16)
QUICK = Extent(least=2, most=4)


@dataclass(frozen=True, slots=True)
class Compared:
    """One workload by each of two commits.

    Invariant: without trials, the commit before cannot run it: ``why``.
    """

    name: str
    limit: float
    trials: tuple[Trial, ...] = ()
    why: str = ""

    def and_trial(self, trial: Trial) -> Compared:
        return replace(self, trials=(*self.trials, trial))

    @property
    def before_s(self) -> float | None:
        return min((trial.before_s for trial in self.trials), default=None)

    @property
    def now_s(self) -> float | None:
        return min((trial.now_s for trial in self.trials), default=None)

    @property
    def ratio(self) -> float | None:
        """Below 1 is faster than before."""
        if self.before_s is None or self.now_s is None:
            return None
        return self.now_s / self.before_s

    @property
    def spread(self) -> tuple[float, float]:
        """The ratio without the fastest process before, and without the fastest now: from, to."""
        if len(self.trials) < 2:
            return 0.0, float("inf")
        before = sorted(trial.before_s for trial in self.trials)
        now = sorted(trial.now_s for trial in self.trials)
        return now[0] / before[1], now[1] / before[0]

    @property
    def is_settled(self) -> bool:
        """Whether the result would be the same without any one of the processes."""
        least, greatest = self.spread
        return (least > self.limit) == (greatest > self.limit)

    @property
    def has_failed(self) -> bool:
        return self.ratio is not None and self.ratio > self.limit

    @property
    def word(self) -> str:
        if self.ratio is None:
            return f"skipped: {self.why}"
        if self.has_failed:
            return f"FAILED: over {self.limit:g}"
        return "slower" if self.ratio > SLOWER_RATIO else ""


def needs_trial(found: Compared, extent: Extent) -> bool:
    """Whether to measure again. More trials also try a result that the gate would let pass."""
    if found.why or len(found.trials) >= extent.most:
        return False
    return len(found.trials) < extent.least or not found.is_settled


def report(found: Sequence[Compared], titles: Mapping[str, str]) -> str:
    """Return the table; ``titles`` say what ``before`` and ``now`` are."""
    heading = tuple(titles.get(title, title) for title in TITLES)
    return "\n".join(aligned([heading, *map(_cells, found)], right={1, 3, 5, 8}))


def _cells(one: Compared) -> tuple[str, ...]:
    if one.ratio is None or one.before_s is None or one.now_s is None:
        return one.name, "", "", "", "", "", "", "", "", one.word
    times = (figure(one.before_s * 1e3), "ms", figure(one.now_s * 1e3), "ms")
    spread = "-".join(f"{end:.2f}" for end in one.spread) if len(one.trials) > 1 else ""
    return one.name, *times, f"{one.ratio:.3f}", "x", spread, f"{len(one.trials)}", one.word

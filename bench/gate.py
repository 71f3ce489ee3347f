"""Whether a workload has become slower than the gate lets pass. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench.table import aligned, figure

REGRESSION_RATIO = 2.0  # the book's: beyond it, a change is not let in
SLOWER_RATIO = 1.1  # what is told, since such small steps add up; noise is less
TITLES = ("workload", "before", "", "now", "", "ratio", "")


@dataclass(frozen=True, slots=True)
class Compared:
    """The least processor time of a run of one workload, by each of two commits.

    ratio: below 1 is faster than before. None where the commit before cannot run it: ``why``.
    """

    name: str
    before_s: float | None
    now_s: float
    limit: float
    why: str = ""

    @property
    def ratio(self) -> float | None:
        return None if self.before_s is None else self.now_s / self.before_s

    @property
    def has_failed(self) -> bool:
        return self.ratio is not None and self.ratio > self.limit

    @property
    def word(self) -> str:
        if self.ratio is None:
            return f"skipped: {self.why}"
        if self.has_failed:
            return f"FAILED: more than {self.limit:g} times"
        return "slower" if self.ratio > SLOWER_RATIO else ""


def compared(
    name: str,
    before_s: Sequence[float],
    now_s: Sequence[float],
    limit: float = REGRESSION_RATIO,
    why: str = "",
) -> Compared:
    """Compare runs that took turns; the least of each is what the work costs, the rest is noise."""
    return Compared(name, min(before_s, default=None), min(now_s), limit, why)


def report(found: Sequence[Compared], titles: Mapping[str, str]) -> str:
    """Return the table; ``titles`` say what ``before`` and ``now`` are."""
    heading = tuple(titles.get(title, title) for title in TITLES)
    return "\n".join(aligned([heading, *map(_cells, found)], right={1, 3, 5}))


def _cells(one: Compared) -> tuple[str, ...]:
    before = "" if one.before_s is None else figure(one.before_s * 1e3)
    unit = "" if one.before_s is None else "ms"
    ratio = "" if one.ratio is None else f"{figure(one.ratio)} x"
    return one.name, before, unit, figure(one.now_s * 1e3), "ms", ratio, one.word

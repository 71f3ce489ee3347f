"""Samples as plain numbers: measured in one process, added up in another, then exposed."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from ripple.control.telemetry.metrics import BY_NAME, Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    Key = tuple[str, tuple[str, ...]]


@dataclass(slots=True)
class Histogram:
    """Counts of values by bucket. The last bucket holds values above all bounds."""

    bounds: tuple[float, ...]
    counts: list[int]
    sum: float = 0.0

    @classmethod
    def of(cls, name: str) -> Self:
        """Return an empty one for a metric."""
        bounds = BY_NAME[name].bounds
        return cls(bounds, [0] * (len(bounds) + 1))

    def observe(self, value: float) -> None:
        """Count a value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value


@dataclass(slots=True)
class Samples:
    """Numbers by metric and values of labels, in the order of the metric's.

    Counters and histograms only grow, as long as the process lives.
    """

    numbers: dict[Key, float] = field(default_factory=dict)
    histograms: dict[Key, Histogram] = field(default_factory=dict)

    def set(self, name: str, value: float, *labels: str) -> None:
        """Set a gauge."""
        self.numbers[name, labels] = value

    def set_each(self, name: str, values: Mapping[str, float], *labels: str) -> None:
        """Set numbers by their last label."""
        for last, value in values.items():
            self.set(name, value, *labels, last)

    def add(self, name: str, value: float, *labels: str) -> None:
        """Add to a number."""
        self.numbers[name, labels] = self.numbers.get((name, labels), 0) + value

    def observe(self, name: str, value: float, *labels: str) -> None:
        """Count a value in a histogram."""
        found = self.histograms.get((name, labels))
        if found is None:
            found = self.histograms[name, labels] = Histogram.of(name)
        found.observe(value)

    def include(self, other: Samples) -> None:
        """Add all samples of another."""
        for (name, labels), value in other.numbers.items():
            self.add(name, value, *labels)
        for (name, labels), one in other.histograms.items():
            own = self.histograms.setdefault((name, labels), Histogram.of(name))
            own.counts = [a + b for a, b in zip(own.counts, one.counts, strict=True)]
            own.sum += one.sum

    def lasting(self) -> Samples:
        """Return the samples that outlive the process: no gauges."""
        kept = {
            key: value
            for key, value in self.numbers.items()
            if BY_NAME[key[0]].kind is Kind.COUNTER
        }
        return Samples(kept, dict(self.histograms))

    def to_values(self) -> dict[str, Any]:
        """Return values for JSON."""
        return {
            "numbers": [[name, list(labels), n] for (name, labels), n in self.numbers.items()],
            "histograms": [
                [name, list(labels), one.counts, one.sum]
                for (name, labels), one in self.histograms.items()
            ],
        }

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> Self:
        """Parse ``to_values``."""
        found = cls({(name, tuple(labels)): n for name, labels, n in values["numbers"]})
        for name, labels, counts, total in values["histograms"]:
            one = Histogram(BY_NAME[name].bounds, list(counts), total)
            found.histograms[name, tuple(labels)] = one
        return found

"""Sampling of traces: so many a second, spread over all batches."""

from __future__ import annotations

from dataclasses import dataclass

NS = 1_000_000_000
# The fractional parts of its multiples are as even as can be: no rhythm of batches hides one.
_STEP = (5**0.5 - 1) / 2


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplerLimits:
    """target_per_s: traces that begin. rate_min, rate_max: shares of batches."""

    target_per_s: int = 100
    rate_min: float = 0.001
    rate_max: float = 1.0


class Sampler:
    """Adapts its rate each second: new rate = rate * target / traces of that second, in bounds.

    Deterministic: the choice follows from the number of batches before.
    """

    def __init__(self, limits: SamplerLimits | None = None) -> None:
        self.limits = limits or SamplerLimits()
        self.rate = self.limits.rate_max
        self._at = 0.0
        self._began_ns: int | None = None
        self._traces = 0

    def admits(self, now_ns: int) -> bool:
        """Return whether the next batch begins a trace. now_ns: of a clock that never goes back."""
        if self._began_ns is None:
            self._began_ns = now_ns
        elif now_ns - self._began_ns >= NS:
            self._adjust((now_ns - self._began_ns) / NS)
            self._began_ns = now_ns
        self._at = (self._at + _STEP) % 1.0
        is_chosen = self._at < self.rate
        self._traces += is_chosen
        return is_chosen

    def _adjust(self, seconds: float) -> None:
        limits = self.limits
        wanted = limits.target_per_s * seconds / max(1, self._traces)
        self.rate = min(limits.rate_max, max(limits.rate_min, self.rate * wanted))
        self._traces = 0

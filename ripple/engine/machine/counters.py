"""Counters of events: applied, late, rejected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields


@dataclass(slots=True)
class Counters:
    """Counts since the partition's first event; part of its state.

    Invariant: applied + very_late + dead_lettered == consumed. Mildly late, future and filtered
    events are among the applied.
    """

    consumed: int = 0
    applied: int = 0
    mildly_late: int = 0
    very_late: int = 0
    future: int = 0
    dead_lettered: int = 0

    def check_invariants(self) -> None:
        """Raise AssertionError when an event is unaccounted for."""
        assert self.applied + self.very_late + self.dead_lettered == self.consumed, self

    def as_dict(self) -> dict[str, int]:
        """Return the counts by name."""
        return {name: getattr(self, name) for name in _NAMES}

    def add(self, now: Counters, before: Mapping[str, int]) -> None:
        """Add the growth of other counters since ``before``."""
        for name, was in before.items():
            setattr(self, name, getattr(self, name) + getattr(now, name) - was)


_NAMES = tuple(field.name for field in fields(Counters))

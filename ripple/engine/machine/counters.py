"""Counters of events: applied, late, rejected."""

from __future__ import annotations

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

    def copy(self) -> Counters:
        """Return counters of these counts."""
        return Counters(
            self.consumed,
            self.applied,
            self.mildly_late,
            self.very_late,
            self.future,
            self.dead_lettered,
        )

    def add(self, now: Counters, before: Counters) -> None:
        """Add the growth of other counters since ``before``."""
        self.consumed += now.consumed - before.consumed
        self.applied += now.applied - before.applied
        self.mildly_late += now.mildly_late - before.mildly_late
        self.very_late += now.very_late - before.very_late
        self.future += now.future - before.future
        self.dead_lettered += now.dead_lettered - before.dead_lettered


_NAMES = tuple(field.name for field in fields(Counters))

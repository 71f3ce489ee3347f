"""Counts of rejected records by cause: bounded, since a cause may quote its record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

CAUSES_MAX = 100
CAUSE_CHARACTERS_MAX = 500
OTHERS = "other"


class Causes(Counter[str]):
    """Counts by cause: of the first ``causes_max`` by themselves, of all others together."""

    def __init__(
        self, *, causes_max: int = CAUSES_MAX, characters_max: int = CAUSE_CHARACTERS_MAX
    ) -> None:
        super().__init__()
        self._causes_max = causes_max
        self._characters_max = characters_max

    def name_of(self, cause: str) -> str:
        """Return the name under which a cause counts."""
        cause = cause[: self._characters_max]
        is_known = cause in self or len(self) - (OTHERS in self) < self._causes_max
        return cause if is_known else OTHERS

    def add(self, cause: str, count: int = 1) -> str:
        """Count a cause; return the name under which."""
        name = self.name_of(cause)
        self[name] += count
        return name

    def take(self, counts: Mapping[str, int]) -> None:
        """Add other counts."""
        for cause, count in counts.items():
            self.add(cause, count)

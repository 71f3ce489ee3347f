"""Limits repetitions: a repeated line is logged a few times, and then counted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

TIMES = 5
WITHIN_S = 10.0
KNOWN_MAX = 1000


Line: TypeAlias = tuple[object, ...]
"""A message first, and all that tells lines apart behind it."""


@dataclass(slots=True)
class _Said:
    since_s: float
    times: int = 0


class Repeats:
    """Admits each line ``TIMES`` times within ``WITHIN_S``."""

    def __init__(self) -> None:
        self._said: dict[Line, _Said] = {}

    def admits(self, line: Line, now_s: float) -> bool:
        """Return whether to log a line now."""
        said = self._said.get(line)
        if said is None:
            if len(self._said) >= KNOWN_MAX:
                return True
            said = self._said[line] = _Said(now_s)
        said.times += 1
        return said.times <= TIMES

    def over(self, now_s: float) -> list[tuple[Line, int]]:
        """Remove expired lines; return the suppressed ones, and how often."""
        found = []
        for line, said in list(self._said.items()):
            if now_s - said.since_s >= WITHIN_S:
                del self._said[line]
                if said.times > TIMES:
                    found.append((line, said.times - TIMES))
        return found

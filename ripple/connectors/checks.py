"""What a field must satisfy beyond its type, as values that the parser compiles in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Finite:
    """A float that is neither infinite nor NaN."""

    def __str__(self) -> str:
        return "finite"


@dataclass(frozen=True, slots=True)
class Positive:
    """A number greater than 0."""

    def __str__(self) -> str:
        return "positive"


@dataclass(frozen=True, slots=True)
class InRange:
    """A number with ``low <= number < high``."""

    low: int
    high: int

    def __str__(self) -> str:
        return f"in [{self.low}, {self.high})"


@dataclass(frozen=True, slots=True)
class NonEmpty:
    """A string of at least one byte."""

    def __str__(self) -> str:
        return "filled in"


Check: TypeAlias = Finite | Positive | InRange | NonEmpty

"""One figure of a benchmark, beside what it is compared with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Aim:
    """A limit on a figure, or on its ratio to the comparison."""

    limit: float
    at_least: bool
    of_ratio: bool = False

    def met_by(self, row: Row) -> bool:
        """Return whether the figure keeps the limit."""
        figure = row.ratio if self.of_ratio else row.value
        assert figure is not None
        return figure >= self.limit if self.at_least else figure <= self.limit

    def __str__(self) -> str:
        return f"{'>=' if self.at_least else '<='} {self.limit:g}{' x' if self.of_ratio else ''}"


def at_least(limit: float, *, of_ratio: bool = False) -> Aim:
    return Aim(limit, at_least=True, of_ratio=of_ratio)


def at_most(limit: float, *, of_ratio: bool = False) -> Aim:
    return Aim(limit, at_least=False, of_ratio=of_ratio)


@dataclass(frozen=True, slots=True)
class Row:
    """A figure of ours, and the comparison's: ``other``, in the same unit, from the same run.

    ratio = value / other: of times and bytes the smaller is the better, of rates the larger.
    """

    name: str
    value: float
    unit: str
    versus: str = ""
    other: float | None = None
    aim: Aim | None = None

    @property
    def ratio(self) -> float | None:
        return self.value / self.other if self.other else None

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "ratio": self.ratio}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Row:
        fields = {name: value for name, value in given.items() if name != "ratio"}
        return cls(**{**fields, "aim": Aim(**given["aim"]) if given["aim"] else None})


def beside(
    name: str, value: float, unit: str, others: Mapping[str, float], aim: Aim | None = None
) -> Iterator[Row]:
    """Yield the figure beside each of several comparisons; the aim stands with the first."""
    for versus, other in others.items():
        yield Row(name, value, unit, versus, other, aim)
        aim = None

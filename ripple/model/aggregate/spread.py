"""Variance and standard deviation, of a sample or a population."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ripple.core.arguments import need_whole
from ripple.core.calls import called
from ripple.model.aggregate.contract import Aggregate, Bound, Input
from ripple.model.aggregate.moments import SpreadRead
from ripple.model.aggregate.parts import FloatSums, SummedState, Tally
from ripple.model.schema.types import FieldType, Float, Option

if TYPE_CHECKING:
    from ripple.model.aggregate.contract import State
    from ripple.model.aggregate.part import Read


@called("rp.variance", '"FIELD"')
def variance(x: Input, *, ddof: int = 1) -> Aggregate:
    """Return (n * sum(x^2) - sum(x)^2) / (n * (n - ddof)) of exact sums, rounded once.

    Option(Float): none for ``ddof`` values or fewer; NaN with a NaN or an infinity.
    """
    return Spread((x,), need_whole("variance: ddof", ddof, 0), root=False)


@called("rp.variance_pop", '"FIELD"')
def variance_pop(x: Input) -> Aggregate:
    """Return the variance of a whole population (``ddof=0``)."""
    return Spread((x,), 0, root=False)


@called("rp.stddev", '"FIELD"')
def stddev(x: Input, *, ddof: int = 1) -> Aggregate:
    """Return the square root of the exact variance, rounded once."""
    return Spread((x,), need_whole("stddev: ddof", ddof, 0), root=True)


@called("rp.stddev_pop", '"FIELD"')
def stddev_pop(x: Input) -> Aggregate:
    """Return the standard deviation of a whole population (``ddof=0``)."""
    return Spread((x,), 0, root=True)


@dataclass(frozen=True)
class Spread(Aggregate):
    """The mean square distance from the mean, or its root."""

    ddof: int
    root: bool

    @property
    def name(self) -> str:  # type: ignore[override]  # two names, one family
        """Its name for users."""
        return "stddev" if self.root else "variance"

    @property
    def parameters(self) -> tuple[str, ...]:
        """By how much the count is lowered."""
        return (f"ddof={self.ddof}",)

    decomposes = True

    def _bind(self, *types: FieldType) -> Bound:
        self.need_numbers(*types)

        def make(_retractable: bool) -> State:
            return SpreadState(self.ddof, root=self.root)

        return Bound((("", Option(Float())),), make)


class SpreadState(SummedState):
    """Count, exact sum and exact sum of squares."""

    adds: ClassVar = {"count": ("", ()), "sum": ("", (0,)), "squares": ("square", (0,))}

    def __init__(self, ddof: int, *, root: bool) -> None:
        self._ddof, self._root = ddof, root
        super().__init__(count=Tally(), sum=FloatSums(), squares=FloatSums())

    def reads(self) -> tuple[Read, ...]:
        """Read the spreads."""
        sums, squares, count = (self.parts[name] for name in ("sum", "squares", "count"))
        return (SpreadRead(sums, squares, count, self._ddof, self._root),)

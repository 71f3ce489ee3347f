"""Exact quantiles: median and percentiles over all values of a group."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ripple.core.arguments import shown
from ripple.core.calls import called
from ripple.core.errors import PlanError
from ripple.model.aggregate.contract import Aggregate, Bound, Input
from ripple.model.schema.types import FieldType, Float, Option

if TYPE_CHECKING:
    from ripple.model.aggregate.contract import State

DENOMINATOR_MAX = 10**18  # the weights of an interpolation fit 64 bits, with a sign

Method = Literal["linear", "nearest-rank"]


@called("rp.median", '"FIELD"')
def median(x: Input) -> Aggregate:
    """Return the middle value, or the exact mean of the two middle ones; Option(Float)."""
    return Quantile((x,), "median", 1, 2, "linear")


@called("rp.percentile", '"FIELD"', "0.95")
def percentile(x: Input, q: float, *, method: Method = "linear") -> Aggregate:
    """Return the value below which ``q`` per cent (0 to 100) of the group's numbers lie.

    ``q`` means the decimal number as written: 99.9 is 999/1000 of the group. With n ordered
    values counted from 0, "linear" (Hyndman and Fan's type 7, NumPy's default) reads place
    (n - 1) * q / 100 and interpolates between its neighbours exactly, rounding once to a
    Float; "nearest-rank" gives the value of rank ceil(n * q / 100), in x's own type. NaN is
    above every other number. None for an empty group. A float between 0 and 1 is warned of, for
    elsewhere it may be a share of one: ``Decimal("0.5")`` says that half a per cent is meant.
    """
    return quantile_of(x, q, method=method)


def quantile_of(x: Input, q: Any, *, method: Method = "linear") -> Quantile:
    """Return the quantile of so many per cent; raises PlanError."""
    is_number = isinstance(q, (int, float, Decimal, np.number)) and not isinstance(q, bool)
    if not is_number or isinstance(q, (np.complexfloating, np.timedelta64)) or not 0 <= q <= 100:
        raise PlanError(f"percentile: q must be a number from 0 to 100, not {shown(q)}")
    share = Fraction(Decimal(str(q))) / 100
    if share.denominator > DENOMINATOR_MAX:
        raise PlanError(f"percentile: q must have at most 16 decimal places, unlike {q}")
    if not isinstance(method, str) or method not in ("linear", "nearest-rank"):
        raise PlanError(
            f"percentile: method must be 'linear' or 'nearest-rank', not {shown(method)}"
        )
    if isinstance(q, float) and 0 < q < 1:
        warnings.warn(
            f"percentile: q={q} is {q} per cent: say q={q * 100:g} for that share of "
            f"the group, or q=Decimal('{q}')",
            stacklevel=3,
        )
    return Quantile((x,), "percentile", share.numerator, share.denominator, method)


@dataclass(frozen=True)
class Quantile(Aggregate):
    """The value at the share numerator / denominator, in lowest terms, of the order."""

    name: str  # type: ignore[misc]  # two names, one family
    numerator: int
    denominator: int
    method: Method

    @property
    def parameters(self) -> tuple[str, ...]:
        """Of a percentile, which one; the median says it by its name."""
        if self.name == "median":
            return ()
        per_cent = Decimal(100 * self.numerator) / Decimal(self.denominator)
        return (f"{per_cent.normalize():f}", *(() if self.method == "linear" else (self.method,)))

    def _bind(self, *types: FieldType) -> Bound:
        self.need_numbers(*types)
        (of,) = types

        def make(_retractable: bool) -> State:
            from ripple.model.aggregate import ordered_states  # noqa: PLC0415 - most plans have sums alone

            rule = ordered_states.linear if self.method == "linear" else ordered_states.nearest
            return ordered_states.quantile(of, rule, self.numerator, self.denominator)

        return Bound((("", Option(Float() if self.method == "linear" else of)),), make)

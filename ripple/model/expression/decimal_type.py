"""The type of decimals in expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.core.arguments import need_whole
from ripple.core.errors import PlanError
from ripple.core.frozen import frozen

if TYPE_CHECKING:
    import decimal

PRECISION_MAX = 18  # digits, in a scaled integer of 64 bits
PRECISION_OTHERS = 38  # of decimals of 128 bits


@frozen
class Decimal:
    """Exact numbers of up to ``precision`` digits, ``scale`` of them behind the point.

    ``rp.col("price").cast(rp.Decimal(18, 4))``. Raises PlanError for more than 18 digits.
    """

    precision: int
    scale: int = 0

    def __post_init__(self) -> None:
        most = PRECISION_OTHERS
        precision = need_whole("rp.Decimal: precision", self.precision, 1, most=most)
        if precision > PRECISION_MAX:
            raise PlanError(
                f"{self}: up to {PRECISION_MAX} digits can be held,"
                " in 64 bits; use fewer, or a text"
            )
        scale = need_whole("rp.Decimal: scale", self.scale, 0, most=precision)
        object.__setattr__(self, "precision", precision)
        object.__setattr__(self, "scale", scale)

    def __str__(self) -> str:
        return f"rp.Decimal({self.precision}, {self.scale})"

    __repr__ = __str__


@frozen
class PlainDecimal:
    """A constant, as it is written: ``1.50`` has two digits behind the point."""

    digits: str

    def __repr__(self) -> str:
        return f"decimal.Decimal({self.digits!r})"


def plain_digits(value: decimal.Decimal) -> str:
    """Return a constant as digits with a point, its zeros kept; raises PlanError if it is none."""
    if not value.is_finite():
        raise PlanError(f"the decimal {value} is no number of digits")
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    if abs(exponent) > PRECISION_MAX or len(digits) + max(exponent, 0) > PRECISION_MAX:
        raise PlanError(f"the decimal {value} has more than {PRECISION_MAX} digits")
    return format(value, "f")


def unscaled(text: str) -> tuple[int, int]:
    """Return the units of plain digits, and their scale."""
    whole, _, fraction = text.partition(".")
    return int(whole + fraction), len(fraction)

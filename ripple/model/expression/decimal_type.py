"""The type of decimals, and constants of it in expressions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.core.errors import PlanError
from ripple.core.frozen import frozen
from ripple.model.schema.types import PRECISION_MAX, Decimal

__all__ = ["PRECISION_MAX", "Decimal", "PlainDecimal", "plain_digits", "unscaled"]

if TYPE_CHECKING:
    import decimal


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

"""Logarithms, exponentials and powers of one float, correctly rounded, by decimals."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal
from functools import partial

DIGITS = 40  # at first: of 10^23 arguments one needs more
_NEAR_ZERO = 2.0**-54  # below, log1p(x) and expm1(x) are x, rounded
_EXP_MOST, _EXP_LEAST = 710.0, -746.0  # beyond, exp is infinite or 0
_EXP2_MOST, _EXP2_LEAST = 1024.0, -1076.0
_LOG2_MOST = 1_100.0  # beyond, a power is infinite or 0
_BITS = 54  # of a float, and of a number halfway between two
_ALL_ONE = -50.0  # below, expm1 is -1


def _context(digits: int) -> Context:
    return Context(prec=digits, rounding=ROUND_HALF_EVEN, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])


# Invariant: no result of these is a number halfway between two floats, so that more digits end the
# doubt: each is a float itself, or irrational, by the theorem of Lindemann, or as a root or
# logarithm of a number that is no power. A power may be halfway: ``_dyadic`` finds those.
def _rounded(compute: Callable[[Context], Decimal]) -> float:
    digits = DIGITS
    while True:
        context = _context(digits)
        value = compute(context)
        margin = context.scaleb(context.abs(value), 5 - digits)
        low, high = float(context.subtract(value, margin)), float(context.add(value, margin))
        if low == high:
            return low
        digits *= 2


def _quotient(base: int, x: Decimal, context: Context) -> Decimal:
    return context.divide(context.ln(x), context.ln(Decimal(base)))


def log(x: float) -> float:
    """Return the natural logarithm."""
    return _logarithm(x, lambda value, context: context.ln(value))


def log2(x: float) -> float:
    """Return the logarithm to base 2."""
    mantissa, exponent = math.frexp(x)
    if mantissa == 0.5:  # a power of 2
        return float(exponent - 1)
    return _logarithm(x, partial(_quotient, 2))


def log10(x: float) -> float:
    """Return the logarithm to base 10."""
    return _logarithm(x, lambda value, context: context.log10(value))


def _logarithm(x: float, compute: Callable[[Decimal, Context], Decimal]) -> float:
    if math.isnan(x) or x < 0:
        return math.nan
    if x == 0:
        return -math.inf
    if x in (1.0, math.inf):
        return 0.0 if x == 1.0 else math.inf
    return _rounded(lambda context: compute(Decimal(x), context))


def log1p(x: float) -> float:
    """Return log(1 + x), of the exact sum."""
    if math.isnan(x) or x < -1:
        return math.nan
    if abs(x) < _NEAR_ZERO or x == math.inf:
        return x
    if x == -1:
        return -math.inf
    one_more = _context(1_200).add(Decimal(x), Decimal(1))
    return _rounded(lambda context: context.ln(one_more))


def exp(x: float) -> float:
    """Return e to the power of x."""
    return _power(x, _EXP_MOST, _EXP_LEAST, lambda context: context.exp(Decimal(x)))


def exp2(x: float) -> float:
    """Return 2 to the power of x."""

    def power(context: Context) -> Decimal:
        wide = _context(context.prec + 5)  # x has up to 4 digits before the point
        return context.plus(wide.exp(wide.multiply(wide.ln(Decimal(2)), Decimal(x))))

    if _EXP2_LEAST < x < _EXP2_MOST and x == int(x):
        return math.ldexp(1.0, int(x))
    return _power(x, _EXP2_MOST, _EXP2_LEAST, power)


def _power(x: float, most: float, least: float, compute: Callable[[Context], Decimal]) -> float:
    if math.isnan(x):
        return math.nan
    if x == 0:
        return 1.0
    if x >= most or x <= least:
        return math.inf if x > 0 else 0.0
    return _rounded(compute)


def expm1(x: float) -> float:
    """Return e to the power of x, minus 1, rounded once."""
    if math.isnan(x):
        return math.nan
    if abs(x) < _NEAR_ZERO:
        return x
    if x >= _EXP_MOST or x <= _ALL_ONE:
        return math.inf if x > 0 else -1.0

    def less_one(context: Context) -> Decimal:
        wide = _context(context.prec + 20)  # near 0 the difference has up to 17 digits less
        return context.plus(wide.subtract(wide.exp(Decimal(x)), Decimal(1)))

    return _rounded(less_one)


def power(x: float, y: float) -> float:
    """Return x to the power of y, as IEEE 754 has it: also 1 for y = 0 or x = 1 and a NaN."""
    if y == 0 or x == 1:
        return 1.0
    if math.isnan(x) or math.isnan(y):
        return math.nan
    size = abs(x)
    if math.isinf(y):
        return 1.0 if size == 1 else math.inf if (size > 1) == (y > 0) else 0.0
    is_odd = y % 2 == 1
    sign = math.copysign(1.0, x) if is_odd else 1.0
    if size == 0 or math.isinf(size):
        return sign * (math.inf if (size > 1) == (y > 0) else 0.0)
    if x < 0 and y != math.floor(y):
        return math.nan
    return sign * _positive_power(size, y)


def _positive_power(x: float, y: float) -> float:
    exponent = y * math.log2(x)  # nearly: decides only results far beyond the ends
    if abs(exponent) > _LOG2_MOST:
        return math.inf if exponent > 0 else 0.0
    dyadic = _dyadic(x, y)
    if dyadic is not None:
        whole, shift = dyadic
        try:
            return float(whole << shift) if shift >= 0 else whole / (1 << -shift)
        except OverflowError:
            return math.inf

    def raised(context: Context) -> Decimal:
        wide = _context(context.prec + 5)  # the product has up to 4 digits before the point
        return context.plus(wide.exp(wide.multiply(wide.ln(Decimal(x)), Decimal(y))))

    return _rounded(raised)


def _dyadic(x: float, y: float) -> tuple[int, int] | None:
    """Return x^y as a whole number and a power of 2, if it is such a number with few bits.

    None if it is not, or has more than 54 bits: then it is no float, nor halfway between two.
    """
    numerator, denominator = y.as_integer_ratio()
    odd, below = x.as_integer_ratio()
    shift = 1 - below.bit_length()
    while odd % 2 == 0:
        odd, shift = odd // 2, shift + 1
    if shift * numerator % denominator or (odd > 1 and not 0 < numerator <= _BITS):
        return None
    roots = denominator.bit_length() - 1  # y has so many places behind the point
    for _ in range(roots if odd > 1 else 0):
        root = math.isqrt(odd)
        if root * root != odd:
            return None
        odd = root
    whole = odd**numerator if odd > 1 else 1
    return (whole, shift * numerator // denominator) if whole.bit_length() <= _BITS else None

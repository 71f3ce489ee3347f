"""Logarithms and exponentials of one float, correctly rounded: decimals with enough digits."""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal
from functools import partial

DIGITS = 40  # at first: of 10^23 arguments one needs more
_NEAR_ZERO = 2.0**-54  # below, log1p(x) and expm1(x) are x, rounded
_EXP_MOST, _EXP_LEAST = 710.0, -746.0  # beyond, exp is infinite or 0
_EXP2_MOST, _EXP2_LEAST = 1024.0, -1076.0
_ALL_ONE = -50.0  # below, expm1 is -1


def _context(digits: int) -> Context:
    return Context(prec=digits, rounding=ROUND_HALF_EVEN, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])


# Invariant: no result of these is a number halfway between two floats, so that more digits end the
# doubt: each is a float itself, or irrational, by the theorem of Lindemann, or as a root or
# logarithm of a number that is no power.
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

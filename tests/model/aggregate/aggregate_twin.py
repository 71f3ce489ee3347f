"""The slow, obvious twin: multisets of Python numbers, fractions, one rounding."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import strategies as st


def rounded(value: Fraction) -> float:
    """Round once; Python's int / int is correctly rounded."""
    if value == 0:
        return 0.0
    try:
        return value.numerator / value.denominator
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def exact_sum(values) -> Fraction:
    return sum((Fraction(v) for v in values), Fraction(0))


def special_of(values) -> float | None:
    """The sum if it is not finite by its terms, else None."""
    if any(math.isnan(v) for v in values):
        return math.nan
    signs = {v > 0 for v in values if math.isinf(v)}
    if len(signs) == 2:
        return math.nan
    return None if not signs else (math.inf if signs.pop() else -math.inf)


def float_sum(values) -> float:
    special = special_of(values)
    return rounded(exact_sum(values)) if special is None else special


def same(a: float, b: float) -> bool:
    """Equal to the bit, all NaNs alike."""
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return a == b and math.copysign(1, a) == math.copysign(1, b)


def slots(*items: int) -> np.ndarray:
    return np.array(items, np.int64)


def at(slot: int, values) -> np.ndarray:
    return np.full(len(values), slot, np.int64)


def floats(values) -> np.ndarray:
    return np.array(values, np.float64)


NASTY = [0.0, -0.0, 5e-324, -5e-324, 2.2250738585072014e-308, 1e308, -1e308, 1.7976931348623157e308]
finite_floats = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(NASTY),
    st.integers(-9, 9).map(float),
)
any_floats = st.one_of(finite_floats, st.sampled_from([math.nan, math.inf, -math.inf]))
int64s = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.integers(-100, 100), st.sampled_from([2**63 - 1, -(2**63)])
)


def root(value: Fraction) -> float:
    """The double nearest to the square root: 200 bits of it, and whether more follow."""
    if value == 0:
        return 0.0
    shift = max(0, 200 + value.denominator.bit_length() - value.numerator.bit_length()) // 2
    whole = math.isqrt((value.numerator << 2 * shift) // value.denominator)
    inexact = Fraction(whole, 2**shift) ** 2 != value
    return rounded(Fraction(2 * whole + inexact, 2 ** (shift + 1)))


def spread(values, ddof: int) -> Fraction:
    n, total = len(values), exact_sum(values)
    squares = sum((Fraction(v) ** 2 for v in values), Fraction(0))
    return (n * squares - total**2) / (n * (n - ddof))


def order(value):
    """The sort key of the order that ordered aggregates keep."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
    return (0, value)


def quantile(values, share: Fraction):
    """Hyndman and Fan's type 7, rounded once; ordered values know one zero."""
    ranked = sorted(values, key=order)
    place = (len(ranked) - 1) * share
    low = ranked[int(place)]
    high = ranked[min(int(place) + 1, len(ranked) - 1)]
    weight = place - int(place)
    if not (math.isfinite(low) and math.isfinite(high)):
        return low + 0.0 if weight == 0 else float(low) + float(high)
    return rounded(Fraction(low) * (1 - weight) + Fraction(high) * weight)

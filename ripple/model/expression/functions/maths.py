"""Logarithms, exponentials and decimal rounding of columns of floats, correctly rounded.

A result is computed as the sum of two floats, head and tail ("double-double"), with a relative
error below ERROR. Where all numbers within that error are rounded alike, that is the result;
``exact`` computes the others. So the result is the float nearest to the exact one, and the same
wherever sums, differences and products of floats are IEEE's. NumPy rounds each operation by
itself, so that none is fused.

The error: a product of two such sums errs by 2^-101 at most, a sum of two by 2^-103 if they do not
cancel. ``expm1`` of |r| < 0.35 is a polynomial in s = r/64 < 2^-7.5 of degree 11, which leaves
2^-118 off; its terms from the sixth on are less than 2^-54, in floats with an error of 2^-104.
Five products, and six times m -> 2m + m^2, whose relative derivatives have the product
r e^r / (e^r - 1) < 1.2, make less than 1.2 * (5 + 6 * 2) * 2^-101 < 2^-96. A logarithm is
y + log(1 + t) with a float y near it and t = m e^-y - 1: the error of e^-y - 1 is relative to y.
Multiples of log 2, k log 2 with |k| < 2^11, are of three floats, of which the first two have 42
bits at most and so exact products; the third leaves 2^-127 off. As a sum of two floats below 2^10
they err by 2^-98, relative to a logarithm by 2^-103. A difference of one from x errs by no more,
and this is relative to e^x: so e^x errs by less than 2^-96 + 2^-98 < 2^-95, and so do all others.
ERROR is 2^5 times as large.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ripple.model.expression.functions import exact
from ripple.model.expression.functions.function import Function, table
from ripple.model.expression.typed import Kind, Typed

if TYPE_CHECKING:
    import numpy.typing as npt

    Floats: TypeAlias = npt.NDArray[np.float64]
    Pair: TypeAlias = tuple[Floats, Floats]  # head and tail

ERROR = 2.0**-90
ROWS = 2_048  # at a time, so that what is between stays in the nearest caches

_SPLIT = 134217729.0  # 2^27 + 1: cuts a float into two of 26 bits
_LOG2_A = float.fromhex("0x1.62e42fefa3800p-1")
_LOG2_B = float.fromhex("0x1.ef35793c76000p-45")
_LOG2_C = float.fromhex("0x1.cc01f97b57a08p-87")
_LOG2: Any = (float.fromhex("0x1.62e42fefa39efp-1"), float.fromhex("0x1.abc9e3b39803fp-56"))
_PER_LOG2: Any = (float.fromhex("0x1.71547652b82fep+0"), float.fromhex("0x1.777d0ffda0d24p-56"))
_PER_LOG10: Any = (float.fromhex("0x1.bcb7b1526e50ep-2"), float.fromhex("0x1.95355baaafad3p-57"))
_TAIL = [1 / 39916800, 1 / 3628800, 1 / 362880, 1 / 40320, 1 / 5040, 1 / 720]
_HEAD: list[Any] = [
    (float.fromhex("0x1.1111111111111p-7"), float.fromhex("0x1.1111111111111p-63")),
    (float.fromhex("0x1.5555555555555p-5"), float.fromhex("0x1.5555555555555p-59")),
    (float.fromhex("0x1.5555555555555p-3"), float.fromhex("0x1.5555555555555p-57")),
    (0.5, 0.0),
    (1.0, 0.0),
]
_ROOT_HALF = 0.7071067811865476
_LOG_NEAR = 2.0**-45  # how near NumPy's logarithm has to be, our starting value


def _sum(a: Any, b: Any) -> Any:
    """Return a + b exactly."""
    head = a + b
    other = head - a
    return head, (a - (head - other)) + (b - other)


def _ordered(a: Any, b: Any) -> Any:
    """Return a + b exactly, where |a| is not less than |b|, or a is 0."""
    head = a + b
    return head, b - (head - a)


def _product(a: Any, b: Any) -> Any:
    """Return a * b exactly."""
    head = a * b
    at, bt = _SPLIT * a, _SPLIT * b
    ah, bh = at - (at - a), bt - (bt - b)
    al, bl = a - ah, b - bh
    return head, ((ah * bh - head) + ah * bl + al * bh) + al * bl


def _add(a: Any, b: Any) -> Any:
    head, tail = _sum(a[0], b[0])
    more, rest = _sum(a[1], b[1])
    head, tail = _ordered(head, tail + more)
    return _ordered(head, tail + rest)


def _multiply(a: Any, b: Any) -> Any:
    head, tail = _product(a[0], b[0])
    return _ordered(head, tail + (a[0] * b[1] + a[1] * b[0]))


def _expm1(r: Any) -> Any:
    """Return e^r - 1 of |r| < 0.35, with a relative error below 2^-96."""
    s = r[0] * 0.015625, r[1] * 0.015625
    tail = np.full_like(s[0], _TAIL[0])
    for coefficient in _TAIL[1:]:
        tail = tail * s[0] + coefficient
    m = (tail, np.zeros_like(tail))
    for pair in _HEAD:
        m = _add(pair, _multiply(m, s))
    m = _multiply(m, s)
    for _ in range(6):
        m = _add((2.0 * m[0], 2.0 * m[1]), _multiply(m, m))
    return m


def _multiple_of_log2(k: Any) -> Any:
    return _add(_sum(k * _LOG2_A, k * _LOG2_B), (k * _LOG2_C, np.zeros_like(k)))


def _logarithm(head: Any, tail: Any) -> Any:
    """Return log(head + tail), and where it is as exact as ERROR says."""
    mantissa, exponent = np.frexp(head)
    small = mantissa < _ROOT_HALF
    mantissa = np.where(small, 2.0 * mantissa, mantissa)
    k = (exponent - small).astype(np.float64)
    rest = np.ldexp(tail, -(exponent - small))
    y = np.log(mantissa)
    m = _expm1((-y, np.zeros_like(y)))
    t = _add((mantissa - 1.0, rest), _multiply((mantissa, rest), m))
    near = np.abs(t[0]) < _LOG_NEAR
    square = t[0] * t[0]
    t = _add(t, (t[0] * square / 3.0 - 0.5 * square, np.zeros_like(y)))
    return _add(_multiple_of_log2(k), _add((y, np.zeros_like(y)), t)), near


def _exponential(x: Any) -> Any:
    """Return k and e^x / 2^k - 1."""
    k = np.rint(x * _PER_LOG2[0])
    multiple = _multiple_of_log2(k)
    return k, _expm1(_add((x, np.zeros_like(x)), (-multiple[0], -multiple[1])))


def _log_of(scale: Any) -> Callable[[Any], Any]:
    def log(x: Any) -> Any:
        value, near = _logarithm(x, np.zeros_like(x))
        return (value if scale is None else _multiply(value, scale)), near & (x < np.inf)

    return log


def _log1p(x: Any) -> Any:
    value, near = _logarithm(*_sum(x, np.ones_like(x)))
    return value, near & (np.abs(x) >= 2.0**-50) & (x < np.inf)


def _scaled(k: Any, m: Any) -> Any:
    head, tail = _add((np.ones_like(k), np.zeros_like(k)), m)
    k = k.astype(np.int32)
    return np.ldexp(head, k), np.ldexp(tail, k)


def _exp(x: Any) -> Any:
    good = (x > -650.0) & (x < 709.0)
    return _scaled(*_exponential(np.where(good, x, 0.0))), good


def _exp2(x: Any) -> Any:
    good = (x > -940.0) & (x < 1023.0)
    x = np.where(good, x, 0.0)
    k = np.rint(x)
    f = x - k
    return _scaled(k, _expm1(_multiply((f, np.zeros_like(f)), _LOG2))), good


def _less_one(x: Any) -> Any:
    good = (x > -50.0) & (x < 709.0) & (np.abs(x) >= 2.0**-50)
    k, m = _exponential(np.where(good, x, 1.0))
    whole = k.astype(np.int32)
    part = np.ldexp(m[0], whole), np.ldexp(m[1], whole)
    return _add(_sum(np.ldexp(np.ones_like(k), whole), -np.ones_like(k)), part), good


def _correct(quick: Callable[[Any], Any], alone: Callable[[float], float]) -> Callable[[Any], Any]:
    """Return the function of a column: the quick results that are sure, else the exact ones."""

    def of_column(values: Floats) -> Floats:
        result = np.empty(len(values), np.float64)
        with np.errstate(all="ignore"):
            for begin in range(0, len(values), ROWS):
                x = values[begin : begin + ROWS]
                (head, tail), good = quick(x)
                margin = ERROR * np.abs(head)
                low, high = head + (tail - margin), head + (tail + margin)
                result[begin : begin + ROWS] = low
                for row in np.flatnonzero(~(good & (low == high))).tolist():
                    result[begin + row] = alone(float(x[row]))
        return result

    return of_column


def _round(values: Floats, decimals: int) -> Floats:
    """Round to decimals: an exact product to a whole number, whose quotient is rounded once."""
    power = 10.0**decimals
    with np.errstate(all="ignore"):
        head, tail = _product(values, power)
        whole = np.rint(head)
        # The head may be halfway where the product is not.
        tie = (np.abs(head - whole) == 0.5) & (tail != 0)
        whole = np.where(tie, np.floor(head) + (tail > 0), whole)
        result: Floats = np.copysign(whole / power, values)
        for row in np.flatnonzero(~(np.abs(head) < 2.0**51)).tolist():
            result[row] = round(float(values[row]), decimals)
    result[np.isnan(result)] = np.nan  # of one bit pattern
    return result


def _of_float(name: str, quick: Callable[[Any], Any], alone: Callable[[float], float]) -> Function:
    def converted(x: Typed) -> Typed:
        value = x if x.kind is Kind.FLOAT else Typed("float", Kind.FLOAT, x.nullable, (x,))
        return Typed(name, Kind.FLOAT, x.nullable, (value,), ())

    return Function(
        name,
        ((Kind.FLOAT, Kind.INT),),
        Kind.FLOAT,
        lambda x: alone(float(x)),
        formula=converted,
        columns=_correct(quick, alone),
    )


MATHS = table(
    Function("round.decimals", ((Kind.FLOAT,),), Kind.FLOAT, round, columns=_round),
    _of_float("log", _log_of(None), exact.log),
    _of_float("log2", _log_of(_PER_LOG2), exact.log2),
    _of_float("log10", _log_of(_PER_LOG10), exact.log10),
    _of_float("log1p", _log1p, exact.log1p),
    _of_float("exp", _exp, exact.exp),
    _of_float("exp2", _exp2, exact.exp2),
    _of_float("expm1", _less_one, exact.expm1),
)

"""Functions of numbers with one right answer: of integers, and of floats that IEEE 754 decides."""

from __future__ import annotations

import math

from ripple.model.expression.functions.formula import (
    arithmetic,
    choice,
    comparison,
    converted,
    real,
    whole,
)
from ripple.model.expression.functions.function import Function, table
from ripple.model.expression.typed import Kind, Typed

_NUMBER = (Kind.FLOAT, Kind.INT)


def _sign(x: Typed) -> Typed:
    zero = real(0.0) if x.kind is Kind.FLOAT else whole(0)
    above, below = (converted(comparison(test, x, zero), x.kind) for test in (">", "<"))
    sign = arithmetic("-", above, below)
    if x.kind is Kind.INT:
        return sign
    # Of a NaN the NaN.
    return choice(comparison("!=", x, x), x, sign)


def _plain_sign(x: float) -> float:
    if math.isnan(x):
        return x
    return type(x)((x > 0) - (x < 0))


def _truncate(x: Typed) -> Typed:
    if x.kind is Kind.INT:
        return x
    up, down = (Typed(name, x.kind, x.nullable, (x,)) for name in ("ceil", "floor"))
    return choice(comparison("<", x, real(0.0)), up, down)


def _plain_truncate(x: float) -> float:
    if isinstance(x, int) or not math.isfinite(x):
        return x
    return math.copysign(math.trunc(x), x)


def _power(x: Typed, exponent: int) -> Typed:
    """Multiply by repeated squaring: no square beyond the result is taken, so none overflows."""
    result = None
    square = x
    while exponent:
        if exponent & 1:
            result = square if result is None else arithmetic("*", result, square)
        exponent >>= 1
        if exponent:
            square = arithmetic("*", square, square)
    # Null of null, also to the power of 0.
    return arithmetic("+", arithmetic("*", x, 0), 1) if result is None else result


def _to_integer(x: Typed, converted: Typed) -> Typed:
    """Put null where a float has no 64-bit integer."""
    edge = 2.0**63
    tests = comparison(">=", x, real(-edge)), comparison("<", x, real(edge))
    fits = Typed("&", Kind.BOOL, x.nullable, tests)
    return choice(fits, converted, Typed("null", Kind.INT, nullable=True))


def _plain_to_integer(x: float, _converted: int) -> int | None:
    return int(x) if -(2.0**63) <= x < 2.0**63 else None


NUMBERS = table(
    Function(
        "to_integer", ((Kind.FLOAT,), (Kind.INT,)), Kind.INT, _plain_to_integer, formula=_to_integer
    ),
    Function("sign", (_NUMBER,), None, _plain_sign, formula=_sign),
    Function("truncate", (_NUMBER,), None, _plain_truncate, formula=_truncate),
    Function("**", ((Kind.INT,),), Kind.INT, pow, formula=_power),
)

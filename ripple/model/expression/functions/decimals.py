"""Functions of decimals as scaled integers: what the machine's operations do not do."""

from __future__ import annotations

import decimal
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from ripple.model.expression.expr import ROUNDINGS
from ripple.model.expression.functions import scaled
from ripple.model.expression.functions.function import Function, table
from ripple.model.expression.functions.text import column
from ripple.model.expression.program import FAILURES, NO_NUMBER, NO_ROOM, OVERFLOWN, ZERO_DIVISION
from ripple.model.expression.typed import Kind
from ripple.model.schema.text_columns import parts

_INT, _TEXT, _FLOAT = (Kind.INT,), (Kind.TEXT,), (Kind.FLOAT,)
_OF_VERDICT = np.array([0, NO_NUMBER, NO_ROOM], np.uint8)
_FORM = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_LENGTH_MAX = 100_000  # of a text that is looked at
_CONTEXT = decimal.Context(prec=60, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)


def _failing(values: Any, failures: Any, strict: bool) -> Any:
    """Return values and their failures, or, if not strict, null where they are."""
    return (values, failures) if strict else pa.array(values, pa.int64(), mask=failures != 0)


def _of_text(array: Any, precision: int, scale: int, strict: bool) -> Any:
    valid, offsets, data = parts(array)
    values, verdicts = scaled.parse(valid, offsets, data, precision, scale)
    if not strict and valid is not None:
        verdicts = verdicts | (valid == 0)
    return _failing(values, _OF_VERDICT[verdicts], strict)


def _plain_of_text(text: str, precision: int, scale: int, strict: bool) -> int | None:
    failure = NO_NUMBER
    if len(text) <= _LENGTH_MAX and _FORM.fullmatch(text):
        mantissa, _, power = text.lower().partition("e")
        whole, _, fraction = mantissa.partition(".")
        digits = (whole + fraction).lstrip("+-")
        exponent = max(-_LENGTH_MAX, min(_LENGTH_MAX, int(power[:9] or "0"))) - len(fraction)
        left = digits.rstrip("0")
        exponent += len(digits) - len(left) + scale
        left = left.lstrip("0")
        if not left:
            return 0
        if exponent >= 0 and len(left) + exponent <= precision:
            units: int = int(left) * 10**exponent
            return -units if text.startswith("-") else units
        failure = NO_ROOM
    if strict:
        raise ValueError(FAILURES[failure])
    return None


def _of_float(values: Any, precision: int, scale: int, strict: bool) -> Any:
    found, failed = scaled.of_floats(values, precision, scale)
    return _failing(found, failed * np.uint8(OVERFLOWN), strict)


def _plain_of_float(value: float, precision: int, scale: int, strict: bool) -> int | None:
    if abs(value) < 10.0**18:  # also false of a NaN
        units: int = round(Fraction(value) * 10**scale)
        if abs(units) < 10**precision:
            return units
    if strict:
        raise OverflowError
    return None


def _to_text(values: Any, scale: int) -> Any:
    return column(*scaled.texts(values, scale))


def _plain_to_text(units: int, scale: int) -> str:
    return format(decimal.Decimal(units).scaleb(-scale, _CONTEXT), "f")


def _divide(values: Any, divisors: Any, shift: int, rounding: str) -> Any:
    results, failed = scaled.divide(values, divisors, shift, ROUNDINGS.index(rounding))
    failures = failed * np.uint8(OVERFLOWN)
    failures[divisors == 0] = ZERO_DIVISION
    return results, failures


def _plain_divide(value: int, divisor: int, shift: int, rounding: str) -> int:
    if not divisor:
        raise ValueError(FAILURES[ZERO_DIVISION])
    result = _plain_round(Fraction(value) * Fraction(10) ** shift / divisor, 0, rounding)
    if abs(result) >= 10**18:
        raise OverflowError
    return result


def _round(values: Any, digits: int, rounding: str) -> Any:
    return scaled.rounded(values, digits, ROUNDINGS.index(rounding))


def _plain_round(value: int | Fraction, digits: int, rounding: str) -> int:
    exact = Fraction(value) / 10**digits
    down = abs(exact).__floor__()
    rest, negative = abs(exact) - down, exact < 0
    half = Fraction(1, 2)
    away = {
        "half_even": rest > half or (rest == half and down % 2 == 1),
        "half_up": rest >= half,
        "half_down": rest > half,
        "down": False,
        "up": rest > 0,
        "floor": negative and rest > 0,
        "ceiling": not negative and rest > 0,
    }[rounding]
    result: int = down + away
    return -result if negative else result


DECIMALS = table(
    Function(
        "decimal.of_text", (_TEXT,), Kind.INT, _plain_of_text, columns=_of_text, may_be_null=True
    ),
    Function(
        "decimal.of_float", (_FLOAT,), Kind.INT, _plain_of_float, columns=_of_float,
        may_be_null=True,
    ),
    Function("decimal.to_text", (_INT,), Kind.TEXT, _plain_to_text, columns=_to_text),
    Function(
        "decimal.to_float", (_INT,), Kind.FLOAT,
        lambda units, scale: float(Fraction(units, 10**scale)),
        columns=scaled.to_floats,
    ),
    Function("decimal.divide", (_INT, _INT), Kind.INT, _plain_divide, columns=_divide),
    Function("decimal.round", (_INT,), Kind.INT, _plain_round, columns=_round),
)  # fmt: skip

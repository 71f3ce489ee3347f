"""Functions of decimals of up to 38 digits, as columns store them: texts; see ``schema.wide``."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa

from ripple.model.expression.expr import ROUNDINGS
from ripple.model.expression.functions.function import Function, table
from ripple.model.expression.program import NO_NUMBER, NO_ROOM, OVERFLOWN, ZERO_DIVISION
from ripple.model.expression.typed import Kind
from ripple.model.schema import scaled, wide
from ripple.model.schema.logical.wide_decimals import stored_of, units_in
from ripple.model.schema.text_columns import parts, text_column, valid_in
from ripple.model.schema.types import PRECISION_MAX, PRECISION_OTHERS

_INT, _TEXT, _FLOAT = (Kind.INT,), (Kind.TEXT,), (Kind.FLOAT,)
_OF_VERDICT = np.array([0, NO_NUMBER, NO_ROOM], np.uint8)
_END = 10**PRECISION_OTHERS
_LOW = (1 << 64) - 1
_LEAST = -(1 << 63)
_NARROW = PRECISION_MAX  # digits of the loops of ``scaled``; most decimals have no more


def halves(units: Any) -> Any:
    """Return integers as int64[n, 2], the lower half first."""
    found = np.empty((len(units), 2), np.int64)
    found[:, 0] = np.array([one & _LOW for one in units], np.uint64).view(np.int64)
    found[:, 1] = [one >> 64 for one in units]
    return found


def whole(units: Any) -> list[int]:
    """Return int64[n, 2] as integers."""
    pairs = zip(units[:, 1].tolist(), units[:, 0].view(np.uint64).tolist(), strict=True)
    return [high << 64 | low for high, low in pairs]


def fitting(numbers: list[int], end: int = _END) -> tuple[Any, Any]:
    """Return integers as int64[n, 2], 0 beyond ``end``, and where they are beyond it, bool[n]."""
    beyond = [abs(one) >= end for one in numbers]
    kept = [0 if is_beyond else one for one, is_beyond in zip(numbers, beyond, strict=True)]
    return halves(kept), np.array(beyond, np.bool_)


def wide_of(numbers: Any) -> Any:
    """Return int64[n] as int64[n, 2]."""
    return np.stack([numbers, numbers >> 63], axis=1)


def _both(left: Any, right: Any) -> Any:
    """Return the mask of values in both columns, as ``valid_in``."""
    found = [one for one in (valid_in(left), valid_in(right)) if one is not None]
    return None if not found else found[0] if len(found) == 1 else found[0] & found[1]


def _strictly(units: Any, valid: Any, failures: Any, strict: bool) -> Any:
    """Return a column and its failures, or, if not strict, null where they are."""
    if strict:
        return stored_of(units, valid), failures
    good = (failures == 0).view(np.uint8)
    return stored_of(units, good if valid is None else good & valid)


def _of_units(numbers: Any, digits: int) -> Any:
    units, failed = wide.finer(wide_of(np.ascontiguousarray(numbers)), digits, PRECISION_OTHERS)
    return stored_of(units), failed * np.uint8(OVERFLOWN)


def _of_text(array: Any, precision: int, scale: int, strict: bool) -> Any:
    units, verdicts = wide.parse(*parts(array), precision, scale)
    return _strictly(units, valid_in(array), _OF_VERDICT[verdicts], strict)


def _narrow(units: Any) -> tuple[Any, Any]:
    """Return int64[n, 2] as int64[n], 0 where there are more than 18 digits, and where not."""
    low = np.ascontiguousarray(units[:, 0])
    is_narrow = (units[:, 1] == low >> 63) & (np.abs(low) < 10**_NARROW) & (low != _LEAST)
    return np.where(is_narrow, low, 0), is_narrow


def _of_float(values: Any, precision: int, scale: int, strict: bool) -> Any:
    # Here a decimal of up to 18 digits fits.
    if scale <= _NARROW:
        numbers, failures = scaled.of_floats(np.ascontiguousarray(values), _NARROW, scale)
    else:
        numbers, failures = np.zeros(len(values), np.int64), np.ones(len(values), np.uint8)
    units, rows, end = wide_of(numbers), np.flatnonzero(failures), 10**precision
    exact = [
        round(Fraction(value) * 10**scale) if math.isfinite(value) else end
        for value in np.asarray(values)[rows].tolist()
    ]
    units[rows], beyond = fitting(exact, end)
    failures[rows] = beyond * np.uint8(NO_ROOM)
    return _strictly(units, None, failures, strict)


def _fitted(array: Any, digits: int, precision: int, strict: bool) -> Any:
    units, failed = wide.finer(units_in(array), digits, precision)
    return _strictly(units, valid_in(array), failed * np.uint8(NO_ROOM), strict)


def _finer(array: Any, digits: int) -> Any:
    units, failed = wide.finer(units_in(array), digits, PRECISION_OTHERS)
    return stored_of(units, valid_in(array)), failed * np.uint8(OVERFLOWN)


def _sums(minus: bool) -> Callable[[Any, Any], Any]:
    def added(left: Any, right: Any) -> Any:
        units, failed = wide.sums(units_in(left), units_in(right), minus, PRECISION_OTHERS)
        return stored_of(units, _both(left, right)), failed * np.uint8(OVERFLOWN)

    return added


def _product(left: Any, right: Any) -> Any:
    units, failed = wide.products(units_in(left), units_in(right), PRECISION_OTHERS)
    return stored_of(units, _both(left, right)), failed * np.uint8(OVERFLOWN)


def _negative(array: Any) -> Any:
    units = units_in(array)
    return stored_of(
        wide.sums(np.zeros_like(units), units, True, PRECISION_OTHERS)[0], valid_in(array)
    )


def _magnitude(array: Any) -> Any:
    units = units_in(array)
    other = wide.sums(np.zeros_like(units), units, True, PRECISION_OTHERS)[0]
    return stored_of(np.where(units[:, 1:] < 0, other, units), valid_in(array))


def _divide(left: Any, right: Any, shift: int, rounding: str) -> Any:
    above, below = units_in(left), units_in(right)
    (numbers, is_narrow), (divisors, has_narrow) = _narrow(above), _narrow(below)
    failures = np.zeros(len(left), np.uint8)
    if -_NARROW <= shift <= 2 * _NARROW:
        found, failed = scaled.divide(numbers, divisors, shift, ROUNDINGS.index(rounding))
        units, rows = wide_of(found), np.flatnonzero(~(is_narrow & has_narrow) | (failed != 0))
    else:
        units, rows = np.empty_like(above), np.arange(len(left))
    more, less = 10 ** max(shift, 0), 10 ** max(-shift, 0)
    quotients = [
        rounded(one * more, other * less, rounding) if other else 0
        for one, other in zip(whole(above[rows]), whole(below[rows]), strict=True)
    ]
    units[rows], beyond = fitting(quotients)
    is_zero = ~below[rows].any(axis=1)
    failures[rows] = np.where(is_zero, ZERO_DIVISION, np.where(beyond, OVERFLOWN, 0))
    return stored_of(units, _both(left, right)), failures


def _round(array: Any, digits: int, rounding: str) -> Any:
    units = units_in(array)
    numbers, is_narrow = _narrow(units)
    if digits <= _NARROW:
        found = wide_of(scaled.rounded(numbers, digits, ROUNDINGS.index(rounding)))
    else:
        found, is_narrow = np.empty_like(units), np.zeros(len(units), np.bool_)
    others = [rounded(one, 10**digits, rounding) for one in whole(units[~is_narrow])]
    found[~is_narrow] = halves(others)
    return stored_of(found, valid_in(array))


def rounded(above: int, below: int, rounding: str) -> int:
    """Return a quotient, rounded to an integer. below: not 0."""
    negative = (above < 0) is not (below < 0)
    quotient, rest = divmod(abs(above), abs(below))
    twice = 2 * rest - abs(below)  # against a half
    away = {
        "half_even": twice > 0 or (twice == 0 and quotient % 2 == 1),
        "half_up": twice >= 0,
        "half_down": twice > 0,
        "down": False,
        "up": rest > 0,
        "floor": rest > 0 and negative,
        "ceiling": rest > 0 and not negative,
    }[rounding]
    quotient += away
    return -quotient if negative else quotient


def _order(left: Any, right: Any, finer_left: int, finer_right: int) -> Any:
    """Return -1, 0 or 1: the order of values of different scales, without overflow."""
    above, below = units_in(left), units_in(right)
    one, is_long = wide.finer(above, finer_left, PRECISION_OTHERS)
    other, is_longer = wide.finer(below, finer_right, PRECISION_OTHERS)
    is_same = one[:, 1] == other[:, 1]
    low, other_low = one[:, 0].view(np.uint64), other[:, 0].view(np.uint64)
    is_more = np.where(is_same, low > other_low, one[:, 1] > other[:, 1])
    is_less = np.where(is_same, low < other_low, one[:, 1] < other[:, 1])
    order = is_more.astype(np.int64) - is_less
    rows = np.flatnonzero(is_long | is_longer)
    pairs = zip(rows.tolist(), whole(above[rows]), whole(below[rows]), strict=True)
    for row, a, b in pairs:
        difference = a * 10**finer_left - b * 10**finer_right
        order[row] = (difference > 0) - (difference < 0)
    return order


def _to_text(array: Any, scale: int) -> Any:
    return text_column(*wide.texts(units_in(array), scale), valid_in(array))


def _to_float(array: Any, scale: int) -> Any:
    units = units_in(array)
    numbers, is_narrow = _narrow(units)
    if scale <= _NARROW:
        results = scaled.to_floats(numbers, scale)
    else:
        results, is_narrow = np.empty(len(units)), np.zeros(len(units), np.bool_)
    results[~is_narrow] = [one / 10**scale for one in whole(units[~is_narrow])]
    return results


def _to_units(array: Any, digits: int, most: int, code: int, strict: bool) -> Any:
    """Return units of 64 bits, 10 ** digits times as many, and where there are more than most."""
    units, failed = wide.finer(units_in(array), digits, PRECISION_OTHERS)
    low = np.ascontiguousarray(units[:, 0])
    beyond = (low >> 63 != units[:, 1]) | (low > most) | (low < -most - (code == OVERFLOWN))
    failures = (beyond | failed.view(np.bool_)) * np.uint8(code)
    return (low, failures) if strict else pa.array(low, mask=failures != 0)


WIDE = table(
    Function("wide.of_units", (_INT,), Kind.TEXT, columns=_of_units),
    Function("wide.of_text", (_TEXT,), Kind.TEXT, columns=_of_text, may_be_null=True),
    Function("wide.of_float", (_FLOAT,), Kind.TEXT, columns=_of_float, may_be_null=True),
    Function("wide.fitted", (_TEXT,), Kind.TEXT, columns=_fitted, may_be_null=True),
    Function("wide.finer", (_TEXT,), Kind.TEXT, columns=_finer),
    Function("wide.add", (_TEXT, _TEXT), Kind.TEXT, columns=_sums(minus=False)),
    Function("wide.subtract", (_TEXT, _TEXT), Kind.TEXT, columns=_sums(minus=True)),
    Function("wide.multiply", (_TEXT, _TEXT), Kind.TEXT, columns=_product),
    Function("wide.divide", (_TEXT, _TEXT), Kind.TEXT, columns=_divide),
    Function("wide.negative", (_TEXT,), Kind.TEXT, columns=_negative),
    Function("wide.magnitude", (_TEXT,), Kind.TEXT, columns=_magnitude),
    Function("wide.round", (_TEXT,), Kind.TEXT, columns=_round),
    Function("wide.order", (_TEXT, _TEXT), Kind.INT, columns=_order),
    Function("wide.to_text", (_TEXT,), Kind.TEXT, columns=_to_text),
    Function("wide.to_float", (_TEXT,), Kind.FLOAT, columns=_to_float),
    Function("wide.to_units", (_TEXT,), Kind.INT, columns=_to_units, may_be_null=True),
)

assert set(ROUNDINGS) == {"half_even", "half_up", "half_down", "down", "up", "floor", "ceiling"}

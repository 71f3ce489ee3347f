"""Functions of decimals as scaled integers, beyond the machine's operations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from ripple.model.expression.expr import ROUNDINGS
from ripple.model.expression.functions.function import Function, table
from ripple.model.expression.program import NO_NUMBER, NO_ROOM, OVERFLOWN, ZERO_DIVISION
from ripple.model.expression.typed import Kind
from ripple.model.schema import scaled
from ripple.model.schema.text_columns import parts, text_column

_INT, _TEXT, _FLOAT = (Kind.INT,), (Kind.TEXT,), (Kind.FLOAT,)
_OF_VERDICT = np.array([0, NO_NUMBER, NO_ROOM], np.uint8)


def _failing(values: Any, failures: Any, strict: bool) -> Any:
    """Return values and their failures, or, if not strict, null where they are."""
    return (values, failures) if strict else pa.array(values, pa.int64(), mask=failures != 0)


def _of_text(array: Any, precision: int, scale: int, strict: bool) -> Any:
    valid, offsets, data = parts(array)
    values, verdicts = scaled.parse(valid, offsets, data, precision, scale)
    return _failing(values, _OF_VERDICT[verdicts], strict)


def _of_float(values: Any, precision: int, scale: int, strict: bool) -> Any:
    found, failed = scaled.of_floats(values, precision, scale)
    return _failing(found, failed * np.uint8(NO_ROOM), strict)


def _of_units(units: Any, most: int) -> Any:
    return units, ((units > most) | (units < -most)) * np.uint8(NO_ROOM)


def _to_text(values: Any, scale: int) -> Any:
    return text_column(*scaled.texts(values, scale))


def _divide(values: Any, divisors: Any, shift: int, rounding: str) -> Any:
    results, failed = scaled.divide(values, divisors, shift, ROUNDINGS.index(rounding))
    failures = failed * np.uint8(OVERFLOWN)
    failures[divisors == 0] = ZERO_DIVISION
    return results, failures


def _round(values: Any, digits: int, rounding: str) -> Any:
    return scaled.rounded(values, digits, ROUNDINGS.index(rounding))


DECIMALS = table(
    Function("decimal.of_text", (_TEXT,), Kind.INT, columns=_of_text, may_be_null=True),
    Function("decimal.of_float", (_FLOAT,), Kind.INT, columns=_of_float, may_be_null=True),
    Function("decimal.of_units", (_INT,), Kind.INT, columns=_of_units),
    Function("decimal.to_text", (_INT,), Kind.TEXT, columns=_to_text),
    Function("decimal.to_float", (_INT,), Kind.FLOAT, columns=scaled.to_floats),
    Function("decimal.divide", (_INT, _INT), Kind.INT, columns=_divide),
    Function("decimal.round", (_INT,), Kind.INT, columns=_round),
)

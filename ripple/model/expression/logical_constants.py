"""Dates, times, decimals, UUIDs and bytes as constants in expressions."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from typing import Any, TypeAlias

from ripple.core.errors import PlanError
from ripple.core.frozen import frozen
from ripple.model.schema.logical.rule import rule_of
from ripple.model.schema.types import PRECISION_OTHERS, Date, DateTime


@frozen
class PlainDate:
    """A constant, by its days since 1970."""

    number: int

    @property
    def text(self) -> str:
        """The date as ISO 8601 writes it."""
        return rule_of(Date()).written(self.number)

    def __repr__(self) -> str:
        return repr(rule_of(Date()).value(self.number))


@frozen
class PlainTime:
    """A constant, by its nanoseconds since 1970."""

    number: int

    @property
    def text(self) -> str:
        """The time as ISO 8601 writes it, in UTC."""
        return rule_of(DateTime()).written(self.number)

    def __repr__(self) -> str:
        return f"datetime.datetime.fromisoformat({self.text!r})"


@frozen
class PlainDecimal:
    """A constant with the digits of its text: ``1.50`` has two behind the point."""

    digits: str

    def __repr__(self) -> str:
        return f"decimal.Decimal({self.digits!r})"


@frozen
class PlainUuid:
    """A constant, by its stored text."""

    text: str

    def __repr__(self) -> str:
        return f"uuid.UUID({self.text!r})"


@frozen
class PlainBytes:
    """A constant, by its stored digits."""

    text: str

    def __repr__(self) -> str:
        return repr(bytes.fromhex(self.text))


Plain: TypeAlias = PlainDate | PlainTime | PlainDecimal | PlainUuid | PlainBytes


def plain_logical(value: Any) -> Plain | None:
    """Return the constant of a value of a logical type, None for another value.

    Raises PlanError for a time without a zone, and for a decimal of too many digits or of none.
    """
    if type(value) is decimal.Decimal:
        return PlainDecimal(_digits(value))
    if isinstance(value, uuid.UUID):
        return PlainUuid(str(value))
    if isinstance(value, bytes):
        return PlainBytes(value.hex())
    if not isinstance(value, dt.date):
        return None
    if not isinstance(value, dt.datetime):
        return PlainDate(rule_of(Date()).number(value) or 0)
    number = rule_of(DateTime()).number(value)
    if number is None and value.tzinfo and value.utcoffset() is not None:
        raise PlanError(f"{value!r} is no time of 64 bits, from 1677-09-21 to 2262-04-11")
    if number is None:
        raise PlanError(f"{value!r} has no zone: add one, as in tzinfo=datetime.UTC")
    return PlainTime(number)


def _digits(value: decimal.Decimal) -> str:
    """Return the digits with a point, zeros kept."""
    if not value.is_finite():
        raise PlanError(f"the decimal {value} is no number of digits")
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    if abs(exponent) > PRECISION_OTHERS or len(digits) + max(exponent, 0) > PRECISION_OTHERS:
        raise PlanError(f"the decimal {value} has more than {PRECISION_OTHERS} digits")
    return format(value, "f")


def unscaled(text: str) -> tuple[int, int]:
    """Return the units of plain digits, and their scale."""
    whole, _, fraction = text.partition(".")
    return int(whole + fraction), len(fraction)

"""Dates as constants in expressions."""

from __future__ import annotations

import datetime as dt
from typing import Any

from ripple.core.frozen import frozen

_EPOCH = dt.date(1970, 1, 1).toordinal()


@frozen
class PlainDate:
    """A constant, by its days since 1970."""

    days: int

    @property
    def text(self) -> str:
        """The date as ISO 8601 writes it."""
        return dt.date.fromordinal(self.days + _EPOCH).isoformat()

    def __repr__(self) -> str:
        return repr(dt.date.fromordinal(self.days + _EPOCH))


def plain_date(value: Any) -> PlainDate | None:
    """Return the constant of a date without a time; None for another value."""
    if not isinstance(value, dt.date) or isinstance(value, dt.datetime):
        return None
    return PlainDate(value.toordinal() - _EPOCH)

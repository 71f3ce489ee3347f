"""Instants of event time, written as text."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_FRACTION = re.compile(r"(?<=:[0-9]{2})[.,]([0-9]+)")
_NUMBER = re.compile(r"([0-9]{1,19})\s*ns")
_INT64_MAX = (1 << 63) - 1


def instant_ns(text: str) -> int:
    """Return the nanoseconds since 1970 of ``2024-02-26T14:30:00.123456789Z``, or ``17ns``.

    A time without a zone is UTC. Raises ValueError for a text that is neither, or a time without an
    exact 64-bit number of nanoseconds.
    """
    found = any_instant_ns(text)
    if not -_INT64_MAX <= found <= _INT64_MAX:
        raise ValueError(f"{text!r} is beyond 64 bits of nanoseconds")
    return found


def instant_text(time_ns: int) -> str:
    """Return nanoseconds since 1970 as ``2024-02-26T14:30:00.5Z``, as ``instant_ns`` reads them."""
    seconds, fraction_ns = divmod(time_ns, 1_000_000_000)
    whole = (_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()
    digits = f".{fraction_ns:09}".rstrip("0") if fraction_ns else ""
    return f"{whole}{digits}Z"


def any_instant_ns(text: str) -> int:
    """Return the same, also of years that events cannot have: before all of them, or after."""
    number = _NUMBER.fullmatch(text)
    if number is not None:
        return int(number[1])
    fraction = _FRACTION.search(text)
    digits = fraction[1] if fraction is not None else ""
    if len(digits) > 9:
        raise ValueError(f"{text!r} has parts of a nanosecond")
    moment = datetime.fromisoformat(_FRACTION.sub("", text))
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    since_us = (moment - _EPOCH) // timedelta(microseconds=1)
    return since_us * 1000 + int(digits.ljust(9, "0"))

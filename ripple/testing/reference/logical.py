"""Dates, times, UUIDs and bytes in expressions, one value at a time: the slow twin.

A date is Python's ``datetime.date``, a time its whole nanoseconds, of the kind ``datetime``.
"""

from __future__ import annotations

import base64
import datetime as dt
import operator
import re
import uuid
from collections.abc import Callable
from typing import Any

from ripple.model.expression.expr import Expr
from ripple.model.expression.functions import find
from ripple.model.expression.logical_constants import PlainDate, PlainTime
from ripple.testing.reference.failures import (
    NOT_A_DATE,
    NOT_A_TIME,
    NOT_A_UUID,
    NOT_ENCODED,
    OVERFLOW,
    WORST,
    Failed,
)

EPOCH = dt.date(1970, 1, 1)
_ISO = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?"
    r"(?:Z|([+-])([0-9]{2})(?::?([0-9]{2}))?)"
)
_COMPARE: dict[str, Any] = {
    "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
_NS = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "d": 86_400 * 10**9}


def constant(value: PlainDate | PlainTime) -> tuple[Any, Any]:
    """Return kind and value of a constant."""
    if isinstance(value, PlainTime):
        return dt.datetime, value.number
    return dt.date, dt.date.fromisoformat(value.text)


def concerned(expr: Expr, kinds: list[Any]) -> bool:
    """Tell whether dates, times, UUIDs or bytes are computed."""
    makes = expr.operation == "cast" and expr.value in ("date", "datetime", "UUID")
    makes = makes or expr.operation == "str.decode"
    own = {dt.date, dt.datetime, uuid.UUID, bytes}
    return makes or expr.operation == "dt.date" or any(kind in own for kind in kinds)


def evaluate(expr: Expr, kinds: list[Any], args: list[Any]) -> tuple[Any, Any]:
    """Return kind and value of an operation with these."""
    operation = expr.operation
    own = next((one for one in (uuid.UUID, bytes, dt.datetime) if one in kinds), dt.date)
    if operation == "str.decode" or (operation == "cast" and expr.value == "UUID"):
        return _of_text(operation == "str.decode", *args)
    if operation == "cast" and expr.value in ("date", "datetime") and kinds[0] is str:
        kind = dt.date if expr.value == "date" else dt.datetime
        text, failed = args[0], NOT_A_DATE if kind is dt.date else NOT_A_TIME
        if text is None or isinstance(text, Failed):
            return kind, text
        found = _date_of(text) if kind is dt.date else _time_of(text)
        return kind, (failed if len(expr.args) == 1 else None) if found is None else found
    if operation == "cast" and expr.value == "datetime":
        return dt.datetime, args[0]
    if operation == "is_null":
        return bool, args[0] if isinstance(args[0], Failed) else args[0] is None
    if operation == "fill_null":
        return own, args[1] if args[0] is None else args[0]
    if operation == "when":
        return own, args[0] if isinstance(args[0], Failed) else args[1 if args[0] else 2]
    kind, compute = {
        dt.datetime: _of_times,
        dt.date: _strict,
        uuid.UUID: _of_uuids,
        bytes: _of_bytes,
    }[own](expr, kinds)
    failures = [arg for arg in args if isinstance(arg, Failed)]
    if failures:
        return kind, max(failures, key=WORST.index)
    return kind, None if None in args else compute(*args)


def _of_text(is_bytes: bool, text: Any, *options: Any) -> tuple[Any, Any]:
    """Return kind and value of a UUID or, with their encoding before ``strict``, of bytes."""
    kind = bytes if is_bytes else uuid.UUID
    if text is None or isinstance(text, (Failed, uuid.UUID)):
        return kind, text
    found = _bytes_of(text, options[0]) if is_bytes else _uuid_of(text)
    if found is None and options[1:] != (False,) and options != (False,):
        return kind, NOT_ENCODED if is_bytes else NOT_A_UUID
    return kind, found


def _strict(  # noqa: C901, PLR0912  # one case an operation
    expr: Expr, kinds: list[Any]
) -> tuple[Any, Callable[..., Any]]:
    match expr.operation:
        case "+":
            return dt.date, lambda a, b: _moved(a, b) if isinstance(a, dt.date) else _moved(b, a)
        case "-" if kinds[1] is int:
            return dt.date, lambda a, b: _moved(a, -b)
        case "-":
            return int, lambda a, b: (a - b).days
        case "least":
            return dt.date, min
        case "greatest":
            return dt.date, max
        case "is_in":
            return bool, lambda a, *values: a in values
        case "cast" if expr.value == "date":
            return dt.date, lambda a: a if isinstance(a, dt.date) else _moved(EPOCH, a)
        case "cast":
            return (str, str) if expr.value == "str" else (int, lambda a: (a - EPOCH).days)
        case "dt.date":
            return dt.date, lambda t: EPOCH + dt.timedelta(t // _NS["d"])
        case "dt.epoch":
            return int, _epoch
        case "dt.truncate":
            return dt.date, _truncated
        case "dt.weekday":
            return int, lambda a: a.isoweekday()
        case "dt.quarter":
            return int, lambda a: (a.month + 2) // 3
        case "dt.year" | "dt.month" | "dt.day" as part:
            return int, operator.attrgetter(part.removeprefix("dt."))
    return bool, _COMPARE[expr.operation]


def _of_times(  # one case an operation
    expr: Expr, kinds: list[Any]
) -> tuple[Any, Callable[..., Any]]:
    operation = expr.operation
    match operation:
        case "+":
            return dt.datetime, lambda a, b: _in_64_bits(a + b)
        case "-":
            kind = dt.datetime if kinds[1] is int else int
            return kind, lambda a, b: _in_64_bits(a - b)
        case "least":
            return dt.datetime, min
        case "greatest":
            return dt.datetime, max
        case "is_in":
            return bool, lambda a, *values: a in values
        case "cast":
            return (str, _text) if expr.value == "str" else (int, lambda a: a)
        case "dt.date":
            return dt.date, lambda t: EPOCH + dt.timedelta(t // _NS["d"])
    if operation in _COMPARE:
        return bool, _COMPARE[operation]
    plain = find(operation).plain
    assert plain is not None
    kind = dt.datetime if operation in ("dt.truncate", "dt.span_begin", "dt.session_start") else int
    return str if operation == "dt.to_string" else kind, lambda *a: _called(plain, *a)


def _of_uuids(expr: Expr, _kinds: list[Any]) -> tuple[Any, Callable[..., Any]]:
    match expr.operation:
        case "is_in":
            return bool, lambda a, *values: a in values
        case "cast":
            return str, str
        case "hash":
            plain = find("hash.text").plain
            assert plain is not None
            return int, lambda a: plain(str(a), expr.value)
    return bool, _COMPARE[expr.operation]


def _of_bytes(expr: Expr, _kinds: list[Any]) -> tuple[Any, Callable[..., Any]]:
    match expr.operation:
        case "is_in":
            return bool, lambda a, *values: a in values
        case "bin.size":
            return int, len
        case "bin.encode":
            is_hex = expr.value == "hex"
            return str, lambda a: a.hex() if is_hex else base64.b64encode(a).decode()
        case "hash":
            plain = find("hash.text").plain
            assert plain is not None
            return int, lambda a: plain(a.hex(), expr.value)
    return bool, _COMPARE[expr.operation]


def _called(plain: Callable[..., Any], *args: Any) -> Any:
    found = plain(*args)
    return _in_64_bits(found) if isinstance(found, int) else found


def _in_64_bits(found: int) -> Any:
    return found if -(2**63) <= found < 2**63 else OVERFLOW


def _date_of(text: str) -> dt.date | None:
    if not re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return None
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        return None


def _uuid_of(text: str) -> uuid.UUID | None:
    """Return the UUID of 36 characters."""
    hex4 = "[0-9a-fA-F]{4}"
    is_one = re.fullmatch(f"{hex4}{{2}}-{hex4}-{hex4}-{hex4}-{hex4}{{3}}", text)
    return uuid.UUID(text) if is_one else None


def _bytes_of(text: str, encoding: str) -> bytes | None:
    try:
        found = bytes.fromhex(text) if encoding == "hex" else base64.b64decode(text, validate=True)
    except ValueError:
        return None
    back = found.hex() if encoding == "hex" else base64.b64encode(found).decode()
    return found if back == (text.lower() if encoding == "hex" else text) else None


def _time_of(text: str) -> int | None:
    """Return the nanoseconds of a time in ISO 8601 with a zone."""
    found = _ISO.fullmatch(text)
    day = _date_of(text[:10])
    if found is None or day is None:
        return None
    hour, minute, second, east_h, east_m = (int(part or 0) for part in found.group(1, 2, 3, 6, 7))
    if hour > 23 or minute > 59 or second > 59 or east_h > 23 or east_m > 59:
        return None
    seconds = ((day - EPOCH).days * 24 + hour) * 3600 + minute * 60 + second
    seconds -= (east_h * 3600 + east_m * 60) * (-1 if found[5] == "-" else 1)
    ns = seconds * _NS["s"] + int((found[4] or "").ljust(9, "0"))
    return ns if -(2**63) <= ns < 2**63 else None


def _text(ns: int) -> str:
    at = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=ns // _NS["s"])  # noqa: DTZ001 - UTC
    return f"{at.isoformat()}.{ns % _NS['s']:09}Z"


def _moved(day: dt.date, by: int) -> Any:
    try:
        return day + dt.timedelta(by)
    except OverflowError:
        return OVERFLOW


def _epoch(day: dt.date, unit: str) -> Any:
    return _in_64_bits((day - EPOCH).days * (_NS["d"] // _NS[unit]))


def _truncated(day: dt.date, count: int, unit: str) -> Any:
    if unit == "mo":
        months = (day.year * 12 + day.month - 1) // count * count
        year, month = divmod(months, 12)
        return dt.date(year, month + 1, 1) if year > 0 else OVERFLOW
    days = (day - EPOCH).days
    first = -3 if unit == "w" else 0
    span = 7 * count if unit == "w" else count
    return _moved(EPOCH, (days - first) // span * span + first)

"""Plain Python values as JSON text that reads back equal, type for type.

Users' own aggregates keep any of: None, bool, int, float, str, bytes, Fraction, Decimal, date,
datetime in UTC, UUID, and tuples, lists, sets and dicts of them. Never code, never a class of the
user's: a checkpoint is data.
"""

from __future__ import annotations

import datetime as dt
import json
import math
import uuid
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ripple.model.aggregate.errors import AggregateError, StateError
from ripple.model.schema.logical.times import Nanos

if TYPE_CHECKING:
    from collections.abc import Callable

_ATOMS = (bool, int, float, str, type(None))


def to_text(value: Any) -> str:
    """Return the canonical text; raises :class:`AggregateError` for other types."""
    text = json.dumps(_tagged(value), separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    # Half a surrogate pair is no UTF-8 and becomes JSON's escape.
    return text.encode("utf-8", "backslashreplace").decode()


def of_text(text: str) -> Any:
    """Return the value of a text; raises :class:`StateError` if no such value has it."""
    try:
        return _untagged(json.loads(text))
    except (ValueError, TypeError, KeyError, RecursionError, ArithmeticError) as error:
        raise StateError(f"not a dumped value: {text[:80]!r}") from error


def _tagged(value: Any) -> Any:
    if type(value) is float and not math.isfinite(value):
        return {"float": repr(value)}  # JSON has no such numbers
    if type(value) in _ATOMS:
        return value
    if type(value) is list:
        return [_tagged(item) for item in value]
    if type(value) is tuple:
        return {"tuple": [_tagged(item) for item in value]}
    if type(value) is dict:
        # Ordered by their text, so that equal dicts give equal bytes.
        return {"dict": sorted(([_tagged(k), _tagged(v)] for k, v in value.items()), key=repr)}
    if type(value) in (set, frozenset):
        return {type(value).__name__: sorted((_tagged(item) for item in value), key=repr)}
    if type(value) in _WRITTEN:
        return {type(value).__name__: _WRITTEN[type(value)](value)}
    # Of a zone by name, a text would keep the offset alone, and a restart could change sums.
    if type(value) in (dt.datetime, Nanos) and value.tzinfo is dt.UTC:
        fine = getattr(value, "nanosecond", 0)
        return {"datetime": [value.replace(tzinfo=None).isoformat(), fine]}
    raise AggregateError(
        f"an aggregate's state holds a {type(value).__name__}, which no checkpoint can keep: use"
        " None, bool, int, float, str, bytes, Fraction, Decimal, date, datetime in UTC, UUID, or"
        " tuples, lists, sets, dicts of them"
    )


def _time(parts: list[Any]) -> dt.datetime:
    text, fine = parts
    kind = Nanos if fine else dt.datetime
    time = kind.fromisoformat(text).replace(tzinfo=dt.UTC)
    if isinstance(time, Nanos):
        time.nanosecond = fine
    return time


_WRITTEN: dict[type, Callable[[Any], str]] = {
    Fraction: str,
    Decimal: str,
    dt.date: dt.date.isoformat,
    uuid.UUID: str,
    bytes: bytes.hex,
}
_MAKERS: dict[str, Callable[[Any], Any]] = {
    "tuple": lambda items: tuple(map(_untagged, items)),
    "dict": lambda pairs: {_untagged(key): _untagged(value) for key, value in pairs},
    "set": lambda items: set(map(_untagged, items)),
    "frozenset": lambda items: frozenset(map(_untagged, items)),
    "float": float,
    "Fraction": Fraction,
    "Decimal": Decimal,
    "date": dt.date.fromisoformat,
    "datetime": _time,
    "UUID": uuid.UUID,
    "bytes": bytes.fromhex,
}


def _untagged(value: Any) -> Any:
    if isinstance(value, list):
        return [_untagged(item) for item in value]
    if isinstance(value, dict):
        ((tag, content),) = value.items()
        return _MAKERS[tag](content)
    return value

"""Plain Python values as JSON text that reads back equal, type for type.

Users' own aggregates keep any of: None, bool, int, float, str, Fraction, Decimal, and tuples,
lists, sets and dicts of them. Never code, never a class of the user's: a checkpoint is data.
"""

from __future__ import annotations

import json
import math
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from ripple.model.aggregate.errors import AggregateError, StateError

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
    if type(value) is Fraction:
        return {"Fraction": str(value)}
    if type(value) is Decimal:
        return {"Decimal": str(value)}
    raise AggregateError(
        f"an aggregate's state holds a {type(value).__name__}, which no checkpoint can keep: "
        "use None, bool, int, float, str, Fraction, Decimal, or tuples, lists, sets, dicts of them"
    )


_MAKERS: dict[str, Callable[[Any], Any]] = {
    "tuple": lambda items: tuple(map(_untagged, items)),
    "dict": lambda pairs: {_untagged(key): _untagged(value) for key, value in pairs},
    "set": lambda items: set(map(_untagged, items)),
    "frozenset": lambda items: frozenset(map(_untagged, items)),
    "float": float,
    "Fraction": Fraction,
    "Decimal": Decimal,
}


def _untagged(value: Any) -> Any:
    if isinstance(value, list):
        return [_untagged(item) for item in value]
    if isinstance(value, dict):
        ((tag, content),) = value.items()
        return _MAKERS[tag](content)
    return value

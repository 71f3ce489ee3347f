"""Values as JSON that every reader takes: it has no NaN and no infinities (RFC 8259)."""

from __future__ import annotations

import decimal
import json
import math
from collections.abc import Callable
from typing import Any

_BITS_MAX = 2000  # of integers that Python writes with any limit of digits that it has


def dumps(
    value: Any,
    *,
    spelled: bool = False,
    is_ascii: bool = False,
    indent: int | None = None,
    default: Callable[[Any], object] = str,
) -> str:
    """Return a value as JSON; ``default`` turns values without a JSON form into others.

    NaN and the infinities are ``null`` at any depth, or with ``spelled`` the texts ``"NaN"``,
    ``"Infinity"`` and ``"-Infinity"``, for people. Integers of thousands of digits, which Python
    does not write, are texts.
    """
    try:
        return json.dumps(
            value, ensure_ascii=is_ascii, allow_nan=False, indent=indent, default=default
        )
    except ValueError:
        finite = _finite(value, spelled)
        return json.dumps(finite, ensure_ascii=is_ascii, indent=indent, default=default)


def _finite(value: Any, spelled: bool) -> Any:
    if isinstance(value, dict):
        return {name: _finite(item, spelled) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item, spelled) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(value) if spelled else None
    if isinstance(value, int) and value.bit_length() > _BITS_MAX:
        return str(decimal.Decimal(value))
    return value

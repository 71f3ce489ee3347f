"""Values as JSON that every reader takes: it has no NaN and no infinities (RFC 8259)."""

from __future__ import annotations

import json
import math
from typing import Any


def dumps(value: Any, *, spelled: bool = False) -> str:
    """Return a value as JSON, what JSON has no form for as the text of it.

    NaN and the infinities are ``null`` at any depth, or with ``spelled`` the texts ``"NaN"``,
    ``"Infinity"`` and ``"-Infinity"``, for people.
    """
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False, default=str)
    except ValueError:
        return json.dumps(_finite(value, spelled), ensure_ascii=False, default=str)


def _finite(value: Any, spelled: bool) -> Any:
    if isinstance(value, dict):
        return {name: _finite(item, spelled) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item, spelled) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(value) if spelled else None
    return value

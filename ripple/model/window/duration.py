"""Spans of event time, written as text or as integer nanoseconds."""

from __future__ import annotations

import operator
import re

from ripple.core.arguments import shown
from ripple.core.errors import PlanError

_UNIT_NS = {
    "ns": 1,
    "us": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "sec": 10**9,
    "m": 60 * 10**9,
    "min": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86400 * 10**9,
}
_FORM = re.compile(r"(-?)\s*([0-9]{1,20})(?:\.([0-9]{1,9}))?\s*([a-z]+)")

DURATION_NS_MAX = 1 << 60  # 36 years: start and end of a window stay inside int64


def duration_ns(span: str | int, what: str = "a duration") -> int:
    """Return ``span`` in nanoseconds: ``"60s"``, ``"1.5min"``, ``"500ms"`` or an ``int`` as it is.

    what: how messages call it. Raises :class:`PlanError` when the text is not a number and a unit,
    when it is not a whole number of nanoseconds, or when it lies outside [0, 2^60].
    """
    try:
        value_ns = _parse(span, what) if isinstance(span, str) else operator.index(span)
    except TypeError:
        value_ns = None
    if value_ns is None or isinstance(span, bool):
        raise PlanError(
            f"{what} must be a text such as '60s' or integer nanoseconds, not {shown(span)}"
        )
    if not 0 <= value_ns <= DURATION_NS_MAX:
        raise PlanError(f"{what} must be within 0 to 2^60 ns (36 years), not {shown(span)}")
    return value_ns


def signed_duration_ns(span: str | int, what: str = "a duration") -> int:
    """Return ``span`` in nanoseconds as ``duration_ns`` does; it may be below zero, as "-5s" is.

    Raises :class:`PlanError` where it lies outside [-2^60, 2^60], and as ``duration_ns`` does.
    """
    if isinstance(span, str):
        value_ns = _parse(span, what)
    elif isinstance(span, bool) or not hasattr(span, "__index__"):
        return duration_ns(span, what)
    else:
        value_ns = operator.index(span)
    if abs(value_ns) > DURATION_NS_MAX:
        raise PlanError(f"{what} must be within -2^60 to 2^60 ns (36 years), not {shown(span)}")
    return value_ns


def _parse(text: str, what: str) -> int:
    """Return a span in nanoseconds, with its sign."""
    match = _FORM.fullmatch(text.strip())
    if match is None or match[4] not in _UNIT_NS:
        units = ", ".join(_UNIT_NS)
        raise PlanError(f"{what} must be a number and a unit ({units}), not {shown(text)}")
    sign, whole, fraction, unit = match[1], match[2], match[3] or "", match[4]
    scaled = int(whole + fraction) * _UNIT_NS[unit]
    scale: int = 10 ** len(fraction)
    value_ns, remainder = divmod(scaled, scale)
    if remainder:
        raise PlanError(f"{what} must be a whole number of nanoseconds, unlike {shown(text)}")
    return -value_ns if sign else value_ns

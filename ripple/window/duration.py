"""Spans of event time, written as text or as integer nanoseconds."""

from __future__ import annotations

import re

from ripple.errors import PlanError

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
_FORM = re.compile(r"([0-9]+)(?:\.([0-9]{1,9}))?\s*([a-z]+)")

DURATION_NS_MAX = 1 << 60  # 36 years: start and end of a window stay inside int64


def duration_ns(span: str | int) -> int:
    """Return ``span`` in nanoseconds: ``"60s"``, ``"1.5min"``, ``"500ms"`` or an ``int`` as it is.

    Raises :class:`PlanError` when the text is not a number and a unit, when it is not a whole
    number of nanoseconds, or when it lies outside [0, 2^60].
    """
    if isinstance(span, bool) or not isinstance(span, (str, int)):
        raise PlanError(f"a duration is text such as '60s' or integer nanoseconds, not {span!r}")
    value_ns = span if isinstance(span, int) else _parse(span)
    if not 0 <= value_ns <= DURATION_NS_MAX:
        raise PlanError(f"the duration {span!r} is outside 0 to 2^60 ns (36 years)")
    return value_ns


def _parse(text: str) -> int:
    match = _FORM.fullmatch(text.strip())
    if match is None or match[3] not in _UNIT_NS:
        units = ", ".join(_UNIT_NS)
        raise PlanError(f"cannot read the duration {text!r}: write a number and a unit ({units})")
    whole, fraction, unit = match[1], match[2] or "", match[3]
    scaled = int(whole + fraction) * _UNIT_NS[unit]
    scale: int = 10 ** len(fraction)
    value_ns, remainder = divmod(scaled, scale)
    if remainder:
        raise PlanError(f"the duration {text!r} is not a whole number of nanoseconds")
    return value_ns

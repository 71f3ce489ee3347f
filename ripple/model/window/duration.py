"""Spans of event time, written as text or as integer nanoseconds."""

from __future__ import annotations

import operator
import re
import sys
import warnings

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
_OURS = ("ripple.", "contextlib", "functools")  # modules between a pipeline and this one
_PART = re.compile(r"([0-9]{1,20})(?:\.([0-9]{1,9}))?\s*([a-z]+)\s*")
_FORM = re.compile(r"(-?)\s*((?:[0-9]{1,20}(?:\.[0-9]{1,9})?\s*[a-z]+\s*){1,6})")

DURATION_NS_MAX = 1 << 60  # 36 years: start and end of a window stay inside int64
BRIEF_NS = 10**6  # an int below it may have been meant as seconds


def duration_ns(span: str | int, what: str = "a duration", *, of_wall_clock: bool = False) -> int:
    """Return ``span`` in nanoseconds: ``"60s"``, ``"9h30min"``, ``"1.5s"`` or an ``int`` as it is.

    Event times may be counts of anything, so an int below a millisecond is only warned of.
    what: how messages call it. of_wall_clock: the caller refuses so short a span instead. Raises
    :class:`PlanError` when the text is not a number and a unit, when it is not a whole number of
    nanoseconds, or when it lies outside [0, 2^60].
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
    if not of_wall_clock:
        _warn_of_brief(span, what)
    return value_ns


def signed_duration_ns(span: str | int, what: str = "a duration") -> int:
    """Return ``span`` in nanoseconds as ``duration_ns`` does; it may be below zero, as "-5s" is.

    Raises :class:`PlanError` where it lies outside [-2^60, 2^60], and as ``duration_ns`` does.
    """
    try:
        value_ns = _parse(span, what) if isinstance(span, str) else operator.index(span)
    except TypeError:
        value_ns = None
    if value_ns is None or isinstance(span, bool):
        return duration_ns(span, what)
    if abs(value_ns) > DURATION_NS_MAX:
        raise PlanError(f"{what} must be within -2^60 to 2^60 ns (36 years), not {shown(span)}")
    _warn_of_brief(span, what)
    return value_ns


def _warn_of_brief(span: str | int, what: str) -> None:
    """Warn of an int that may have been meant as seconds, at the line of the caller's caller."""
    if isinstance(span, str) or not 0 < abs(span) < BRIEF_NS:
        return
    level, frame = 3, sys._getframe(2)
    while frame.f_back and frame.f_globals.get("__name__", "ripple.").startswith(_OURS):
        level, frame = level + 1, frame.f_back
    warnings.warn(
        f"{what} is {span} ns, since an int counts nanoseconds: write '{span}s' where seconds are "
        f"meant, else '{span}ns'",
        stacklevel=level,
    )


def _parse(text: str, what: str) -> int:
    """Return a span in nanoseconds, with its sign."""
    match = _FORM.fullmatch(text.strip())
    parts = _PART.findall(match[2]) if match else []
    sizes = [_UNIT_NS.get(unit, 0) for _, _, unit in parts]
    if match is None or 0 in sizes or sizes != sorted(set(sizes), reverse=True):
        units = ", ".join(_UNIT_NS)
        raise PlanError(
            f"{what} must be a number and a unit ({units}) such as '60s', not {shown(text)}"
        )
    total_ns = 0
    for whole, fraction, unit in parts:
        scale: int = 10 ** len(fraction)
        value_ns, remainder = divmod(int(whole + fraction) * _UNIT_NS[unit], scale)
        if remainder:
            raise PlanError(f"{what} must be a whole number of nanoseconds, unlike {shown(text)}")
        total_ns += value_ns
    return -total_ns if match[1] else total_ns

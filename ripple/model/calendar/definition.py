"""Spans of a zone's calendar by definition: what clocks show, minute by minute."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from importlib.resources import files
from zoneinfo import ZoneInfo

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND, _MINUTE = timedelta(seconds=1), timedelta(minutes=1)
_ELAPSED_NS = {"ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3_600 * 10**9}
_MONTHS = {"mo": 1, "q": 3, "y": 12}
_CLOCKS_APART = 26 * 60  # minutes: no clock shows more than a day and two hours less than UTC


def span_at(size: str, zone: str, offset_s: int, time_ns: int) -> tuple[int, int]:
    """Return begin and end of the span that holds ``time_ns``, in nanoseconds."""
    digits = size.rstrip("dhmoqsyw")
    number, unit = int(digits), size[len(digits) :]
    elapsed_ns = _ELAPSED_NS.get(unit, 0) * number
    of = (1, "d") if elapsed_ns else (number, unit)
    shown = (_EPOCH + timedelta(seconds=time_ns // 10**9)).astimezone(_clocks(zone))
    day = (shown.replace(tzinfo=None) - timedelta(seconds=offset_s)).date()
    # Clocks that were set back show a date again: the span is a neighbour's then.
    near = [_day_in(of, day, steps) for steps in range(-2, 4)]
    bounds = [_reached_ns(zone, at, offset_s) for at in near]
    last = max(place for place, bound in enumerate(bounds) if bound <= time_ns)
    begin_ns, end_ns = bounds[last], next(one for one in bounds if one > time_ns)
    if elapsed_ns:
        begin_ns += (time_ns - begin_ns) // elapsed_ns * elapsed_ns
        end_ns = min(end_ns, begin_ns + elapsed_ns)
    return begin_ns, end_ns


def offset_ns(zone: str, time_ns: int) -> int:
    """Return what clocks show at an instant, less UTC."""
    instant = (_EPOCH + timedelta(seconds=time_ns // 10**9)).astimezone(_clocks(zone))
    offset = instant.utcoffset()
    assert offset is not None
    return offset // _SECOND * 10**9


def _day_in(of: tuple[int, str], day: date, steps: int) -> date:
    """Return the first day of the span that has ``day``, or of one so many steps later."""
    number, unit = of
    if unit in _MONTHS:
        months = number * _MONTHS[unit]
        first = ((day.year * 12 + day.month - 1) // months + steps) * months
        return date(first // 12, first % 12 + 1, 1)
    days = number * (7 if unit == "w" else 1)
    monday = 3 if unit == "w" else 0
    since = day - _EPOCH.date() + timedelta(days=monday)
    return _EPOCH.date() + timedelta(days=(since.days // days + steps) * days - monday)


@cache
def _reached_ns(zone: str, day: date, offset_s: int) -> int:
    """Return the first instant at which clocks show midnight of ``day``, and offset_s, or later."""
    clocks = _clocks(zone)
    wanted = datetime.combine(day, time.min) + timedelta(seconds=offset_s)

    def is_reached(instant: datetime) -> bool:
        return instant.astimezone(clocks).replace(tzinfo=None) >= wanted

    instant = wanted.replace(tzinfo=UTC) - _CLOCKS_APART * _MINUTE
    while not is_reached(instant + _MINUTE - _SECOND) and not is_reached(instant + _MINUTE):
        instant += _MINUTE
    while not is_reached(instant):
        instant += _SECOND
    return (instant - _EPOCH) // _SECOND * 10**9


@cache
def _clocks(zone: str) -> ZoneInfo:
    with files("tzdata").joinpath("zoneinfo", *zone.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, key=zone)

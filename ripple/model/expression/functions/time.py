"""Functions of times, nanoseconds since 1970, in the Gregorian calendar: in UTC, or a zone's."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pyarrow as pa

from ripple.model.expression.functions.formula import arithmetic, choice, comparison, whole
from ripple.model.expression.functions.function import Function, table
from ripple.model.expression.functions.strings import formatted
from ripple.model.expression.typed import Kind, Typed
from ripple.model.schema.text_columns import text_column

SECOND = 1_000_000_000
MINUTE, HOUR, DAY = 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND
UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": SECOND, "m": MINUTE, "h": HOUR, "d": DAY}

# The calendar in eras of 400 years that begin on the first of March, 719,468 days before 1970: so
# a leap day is the last of its year, and a month's begin a line through whole numbers.
_ERA_DAYS, _BEFORE_1970 = 146_097, 719_468

_TIME = ((Kind.INT,),)


def _part(unit: int, count: int) -> Callable[[Typed], Typed]:
    def part(t: Typed) -> Typed:
        return arithmetic("%", arithmetic("//", t, unit), count)

    return part


def day_of(t: Typed) -> Typed:
    """Return the days since 1970 of a time."""
    return arithmetic("//", t, DAY)


def _of_day(part: Callable[[Typed], Typed]) -> Callable[[Typed], Typed]:
    return lambda t: part(day_of(t))


def _weekday(days: Typed) -> Typed:
    return arithmetic("+", arithmetic("%", arithmetic("+", days, 3), 7), 1)


def _day_of_era(days: Typed) -> Typed:
    return arithmetic("%", arithmetic("+", days, _BEFORE_1970), _ERA_DAYS)


def _year_of_era(days: Typed) -> Typed:
    day = _day_of_era(days)
    leaps = arithmetic("-", day, arithmetic("//", day, 1_460))
    leaps = arithmetic("+", leaps, arithmetic("//", day, 36_524))
    leaps = arithmetic("-", leaps, arithmetic("//", day, 146_096))
    return arithmetic("//", leaps, 365)


def _day_of_year(days: Typed) -> Typed:
    """Return the day from the first of March on, from 0."""
    year = _year_of_era(days)
    begun = arithmetic("+", arithmetic("*", year, 365), arithmetic("//", year, 4))
    begun = arithmetic("-", begun, arithmetic("//", year, 100))
    return arithmetic("-", _day_of_era(days), begun)


def _month_of_year(days: Typed) -> Typed:
    """Return the month from March on, from 0."""
    day = _day_of_year(days)
    return arithmetic("//", arithmetic("+", arithmetic("*", day, 5), 2), 153)


def _month(days: Typed) -> Typed:
    return arithmetic("+", arithmetic("%", arithmetic("+", _month_of_year(days), 2), 12), 1)


def _day(days: Typed) -> Typed:
    month = _month_of_year(days)
    begun = arithmetic("//", arithmetic("+", arithmetic("*", month, 153), 2), 5)
    return arithmetic("+", arithmetic("-", _day_of_year(days), begun), 1)


def _year(days: Typed) -> Typed:
    era = arithmetic("//", arithmetic("+", days, _BEFORE_1970), _ERA_DAYS)
    year = arithmetic("+", _year_of_era(days), arithmetic("*", era, 400))
    # January and February are of the next year.
    late = comparison(">", _month_of_year(days), whole(9))
    return choice(late, arithmetic("+", year, 1), year)


def _quarter(days: Typed) -> Typed:
    return arithmetic("//", arithmetic("+", _month(days), 2), 3)


def _begin(year: Typed, month: Typed) -> Typed:
    """Return the days from 1970 to the first of a month."""
    early = comparison("<=", month, whole(2))
    shifted = choice(early, arithmetic("-", year, 1), year)
    from_march = arithmetic("%", arithmetic("+", month, 9), 12)
    era = arithmetic("//", shifted, 400)
    of_era = arithmetic("%", shifted, 400)
    days = arithmetic("//", arithmetic("+", arithmetic("*", from_march, 153), 2), 5)
    days = arithmetic("+", days, arithmetic("*", of_era, 365))
    days = arithmetic("+", days, arithmetic("//", of_era, 4))
    days = arithmetic("-", days, arithmetic("//", of_era, 100))
    days = arithmetic("+", days, arithmetic("*", era, _ERA_DAYS))
    return arithmetic("-", days, _BEFORE_1970)


def truncated_days(days: Typed, count: int, unit: str) -> Typed:
    """Return the first day of the span of days, weeks or months that a day is in."""
    if unit == "mo":
        months = arithmetic("*", _year(days), 12)
        months = arithmetic("+", months, arithmetic("-", _month(days), 1))
        months = arithmetic("*", arithmetic("//", months, count), count)
        year, month = arithmetic("//", months, 12), arithmetic("+", arithmetic("%", months, 12), 1)
        return _begin(year, month)
    if unit == "w":
        weeks = arithmetic("//", arithmetic("+", days, 3), 7 * count)
        return arithmetic("-", arithmetic("*", weeks, 7 * count), 3)
    return arithmetic("*", arithmetic("//", days, count), count)


def _truncate(t: Typed, count: int, unit: str) -> Typed:
    if unit in ("mo", "w"):
        return arithmetic("*", truncated_days(day_of(t), count, unit), DAY)
    length = UNITS[unit] * count
    return arithmetic("*", arithmetic("//", t, length), length)


def _at(t: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=t // SECOND)


def _plain_truncate(t: int, count: int, unit: str) -> int:
    if unit == "mo":
        months = (_at(t).year * 12 + _at(t).month - 1) // count * count
        begin = date(months // 12, months % 12 + 1, 1)
        return (begin - date(1970, 1, 1)).days * DAY
    if unit == "w":
        return ((t // DAY + 3) // (7 * count) * (7 * count) - 3) * DAY
    length = UNITS[unit] * count
    return t // length * length


def _plain_text(t: int, form: str) -> str:
    at, rest, text = _at(t), t % SECOND, ""
    letters = iter(form)
    for letter in letters:
        if letter != "%":
            text += letter
            continue
        directive = next(letters)
        if directive in "369":
            next(letters)
            text += f"{rest:09d}"[: int(directive)]
        else:
            text += "%" if directive == "%" else at.strftime(f"%{directive}")
    return text


def _offset(times: Any, name: str, _digest: str) -> Any:
    from ripple.model.calendar.zone import zone  # noqa: PLC0415 - most pipelines have none

    return zone(name).offsets_ns(times)


def _plain_offset(t: int, name: str, _digest: str) -> int:
    from ripple.model.calendar.definition import offset_ns  # noqa: PLC0415 - by definition

    return offset_ns(name, t)


def _plain_local(t: int, name: str, digest: str) -> int:
    return t + _plain_offset(t, name, digest)


def _local(t: Typed, name: str, digest: str) -> Typed:
    offset = Typed("dt.zone_offset", Kind.INT, t.nullable, (t,), (name, digest))
    return arithmetic("+", t, offset)


def _span_begin(times: Any, size: str, name: str, _digest: str) -> Any:
    from ripple.model.calendar.spans import spans  # noqa: PLC0415 - most pipelines have no zone

    return spans(size, name).begins_of(times)


def _plain_span_begin(t: int, size: str, name: str, _digest: str) -> int:
    from ripple.model.calendar.definition import span_at  # noqa: PLC0415 - of the plain function alone

    return span_at(size, name, 0, t)[0]


def _session_start(times: Any, bounds: str, own: bool, _digest: str) -> Any:
    from ripple.model.calendar.trading_spans import unpacked  # noqa: PLC0415 - most have no sessions

    starts, found = unpacked(bounds).starts_of(times, own=own)
    return pa.array(starts, mask=~found)


def _plain_session_start(t: int, bounds: str, own: bool, _digest: str) -> int | None:
    from ripple.model.calendar.trading_spans import unpacked  # noqa: PLC0415 - likewise

    spans = unpacked(bounds)
    begins, size = spans.spans.begins_ns.tolist(), spans.spans.elapsed_ns
    place = max(at for at, begin in enumerate(begins[:-1]) if begin <= t)
    if not (spans.is_open[place] or (own and 0 < place < len(begins) - 2)):
        return None
    begin: int = begins[place]
    return begin + (t - begin) // size * size if size else begin


_LONGER = {"F": "%Y-%m-%d", "T": "%H:%M:%S", "R": "%H:%M"}


def _text(times: Any, form: str) -> Any:
    return text_column(*formatted(times, _expanded(form).encode()))


def _expanded(form: str) -> str:
    text, letters = "", iter(form)
    for letter in letters:
        two = letter + next(letters) if letter == "%" else letter
        text += _LONGER.get(two[1:], two)
    return text


DAY_PARTS: dict[str, Callable[[Typed], Typed]] = {
    "dt.year": _year,
    "dt.quarter": _quarter,
    "dt.month": _month,
    "dt.day": _day,
    "dt.weekday": _weekday,
}
"""The parts of a date, as formulas of the days since 1970."""

TIMES = table(
    Function("dt.year", _TIME, Kind.INT, lambda t: _at(t).year, formula=_of_day(_year)),
    Function(
        "dt.quarter", _TIME, Kind.INT, lambda t: (_at(t).month + 2) // 3, formula=_of_day(_quarter)
    ),
    Function("dt.month", _TIME, Kind.INT, lambda t: _at(t).month, formula=_of_day(_month)),
    Function("dt.day", _TIME, Kind.INT, lambda t: _at(t).day, formula=_of_day(_day)),
    Function(
        "dt.weekday", _TIME, Kind.INT, lambda t: _at(t).isoweekday(), formula=_of_day(_weekday)
    ),
    Function("dt.hour", _TIME, Kind.INT, lambda t: _at(t).hour, formula=_part(HOUR, 24)),
    Function("dt.minute", _TIME, Kind.INT, lambda t: _at(t).minute, formula=_part(MINUTE, 60)),
    Function("dt.second", _TIME, Kind.INT, lambda t: _at(t).second, formula=_part(SECOND, 60)),
    Function("dt.nanosecond", _TIME, Kind.INT, lambda t: t % SECOND, formula=_part(1, SECOND)),
    Function("dt.truncate", _TIME, Kind.INT, _plain_truncate, formula=_truncate),
    Function(
        "dt.epoch",
        _TIME,
        Kind.INT,
        lambda t, unit: t // UNITS[unit],
        formula=lambda t, unit: arithmetic("//", t, UNITS[unit]),
    ),
    Function("dt.zone_offset", _TIME, Kind.INT, _plain_offset, columns=_offset),
    Function("dt.in_zone", _TIME, Kind.INT, _plain_local, formula=_local),
    Function("dt.span_begin", _TIME, Kind.INT, _plain_span_begin, columns=_span_begin),
    Function(
        "dt.session_start",
        _TIME,
        Kind.INT,
        _plain_session_start,
        columns=_session_start,
        may_be_null=True,
    ),
    Function("dt.to_string", _TIME, Kind.TEXT, _plain_text, columns=_text),
)

"""Methods of times, ``col("at").dt``; the names are Polars'."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ripple.core.arguments import need_text, shown
from ripple.core.errors import PlanError
from ripple.model.expression.expr import Expr, Scalar, lit

YEARS_MAX = 292  # of a truncation: a longer span begins before all times, or holds all of them
EPOCHS = ("ns", "us", "ms", "s", "d")
DIRECTIVES = "%Y %m %d %H %M %S %j %u %F %T %R %3f %6f %9f %%"
FORM_MAX = 200  # characters

if TYPE_CHECKING:
    from ripple.model.calendar.trading_spans import OfSessions

_EVERY = re.compile(r"([0-9]{1,7})(ns|us|ms|s|m|h|d|w|mo|q|y)")
_MONTHS = {"mo": 1, "q": 3, "y": 12}
_DAY = 86_400 * 10**9
_LENGTHS = {  # ns
    "ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "h": 3_600 * 10**9,
    "d": _DAY, "w": 7 * _DAY, "mo": 365 * _DAY // 12, "q": 365 * _DAY // 4, "y": 365 * _DAY,
}  # fmt: skip
_FORM = re.compile(r"(?:[^%]|%(?:[YmdHMSjuFTR%]|[369]f))*")


@dataclass(frozen=True, slots=True)
class TimeMethods:
    """Functions of a time, int nanoseconds since 1970, or of a date; null of null.

    A date has the functions of days, and ``truncate`` gives a date. Times are read in UTC, or in
    the zone of ``in_zone``.
    """

    expr: Expr
    zone: str | None = None

    def in_zone(self, zone: str) -> TimeMethods:
        """Return the functions of a zone's clocks: ``.dt.in_zone("America/New_York").hour()``.

        Zones are those of the package ``tzdata``, not of the machine. Raises PlanError for others.
        """
        from ripple.model.calendar.zone import need_zone  # noqa: PLC0415 - most have none

        return TimeMethods(self.expr, need_zone("zone", zone).name)

    def year(self) -> Expr:
        """Return the year."""
        return self._of("year")

    def quarter(self) -> Expr:
        """Return the quarter of the year, 1 to 4."""
        return self._of("quarter")

    def month(self) -> Expr:
        """Return the month, 1 to 12."""
        return self._of("month")

    def day(self) -> Expr:
        """Return the day of the month, from 1."""
        return self._of("day")

    def weekday(self) -> Expr:
        """Return the day of the week, 1 for Monday to 7 for Sunday."""
        return self._of("weekday")

    def hour(self) -> Expr:
        """Return the hour, 0 to 23."""
        return self._of("hour")

    def minute(self) -> Expr:
        """Return the minute, 0 to 59."""
        return self._of("minute")

    def second(self) -> Expr:
        """Return the second, 0 to 59."""
        return self._of("second")

    def nanosecond(self) -> Expr:
        """Return the nanoseconds of the second, 0 to 999,999,999."""
        return self._of("nanosecond")

    def date(self) -> Expr:
        """Return the day, as a date."""
        return self._of("date")

    def truncate(self, every: str) -> Expr:
        """Return the begin of the span that the time is in, as nanoseconds.

        every: a whole number and a unit, ``"15m"``, of ns, us, ms, s, m, h, d, w (from Monday),
        mo, q and y. Spans are counted from 1970, weeks from its first Monday's week, months from
        year 0. In a zone they are those of ``rp.Tumbling`` with ``zone=``: of its calendar, and
        shorter ones from the begin of each day.
        """
        if self.zone is not None:
            return self._span_begin(every)
        need_text("every", every)
        found = _EVERY.fullmatch(every)
        count = int(found[1]) if found else 0
        if not found or not count:
            raise PlanError(
                f"every must be a number and ns, us, ms, s, m, h, d, w, mo, q or y, as in '15m', "
                f"not {shown(every)}"
            )
        months = _MONTHS.get(found[2])
        if count * _LENGTHS[found[2]] > YEARS_MAX * _LENGTHS["y"]:
            raise PlanError(f"every must be at most {YEARS_MAX} years, not {shown(every)}")
        if months:
            return self._of("truncate", count * months, "mo")
        return self._of("truncate", count, found[2])

    def session_start(self, sessions: OfSessions) -> Expr:
        """Return the start of the time's window of ``rp.TradingSessions``; null where it has none.

        So it is null outside of sessions, unless these say ``outside="own"``, and beyond their
        calendar. Raises PlanError for anything but trading sessions.
        """
        from ripple.model.calendar.trading_spans import TradingSpans  # noqa: PLC0415 - most have none

        bounds = getattr(sessions, "bounds", None)
        if not isinstance(bounds, TradingSpans):
            raise PlanError(f"sessions must be rp.TradingSessions(...), not {shown(sessions)}")
        own = sessions.outside == "own"
        options = (lit(bounds.packed()), lit(own), lit(bounds.digest))
        return Expr("dt.session_start", (self.expr, *options))  # the same in each zone

    def epoch(self, time_unit: str = "us") -> Expr:
        """Return the time since 1970 in ``"ns"``, ``"us"``, ``"ms"``, ``"s"`` or ``"d"``."""
        if time_unit not in EPOCHS:
            raise PlanError(f"time_unit must be ns, us, ms, s or d, not {shown(time_unit)}")
        return Expr("dt.epoch", (self.expr, lit(time_unit)))  # the same in each zone

    def to_string(self, format: str | None = None) -> Expr:  # noqa: A002 - Polars' name
        """Return the time as a text, by default with all digits, and a Z in UTC.

        format: texts and %Y %m %d %H %M %S, %j (day of the year), %u (of the week), %F (%Y-%m-%d),
        %T (%H:%M:%S), %R (%H:%M), %3f %6f %9f (of the second, so many digits) and %%.
        """
        if format is None:
            format = "%FT%T.%9f" if self.zone else "%FT%T.%9fZ"  # noqa: A001 - the name of the argument
        need_text("format", format)
        if not _FORM.fullmatch(format) or len(format) > FORM_MAX:
            raise PlanError(
                f"format takes {DIRECTIVES} and up to {FORM_MAX} characters, not {shown(format)}"
            )
        return self._of("to_string", format)

    def _of(self, name: str, *options: Scalar) -> Expr:
        return Expr(f"dt.{name}", (self._shown(), *map(lit, options)))

    def _shown(self) -> Expr:
        """Return the local time of the zone, as nanoseconds."""
        if self.zone is None:
            return self.expr
        from ripple.model.calendar.zone import zone  # noqa: PLC0415 - most pipelines have no zone

        return Expr("dt.in_zone", (self.expr, lit(self.zone), lit(zone(self.zone).digest)))

    def _span_begin(self, every: str) -> Expr:
        from ripple.model.calendar.spans import normal_size, spans  # noqa: PLC0415 - likewise

        assert self.zone is not None
        size = normal_size("every", every)
        digest = spans(size, self.zone).digest
        return Expr("dt.span_begin", (self.expr, lit(size), lit(self.zone), lit(digest)))

    if not TYPE_CHECKING:  # to a type checker, a name that is not above is a mistake

        def __getattr__(self, name: str) -> Any:
            """Raise AttributeError, with the method for the name of another library."""
            from ripple.model.other_names import no_attribute  # noqa: PLC0415 - only on errors

            raise no_attribute(self, name, "time")

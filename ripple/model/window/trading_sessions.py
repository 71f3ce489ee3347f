"""Windows of trading sessions, with bounds from a calendar."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from ripple.core.arguments import shown
from ripple.core.errors import PlanError
from ripple.core.frozen import frozen
from ripple.model.window.duration import duration_ns
from ripple.model.window.instant import instant_text

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

    from ripple.model.calendar.spans import Spans
    from ripple.model.calendar.trading_spans import TradingSpans, TradingTable

    Ints = npt.NDArray[np.int64]

OUTSIDE = ("refuse", "drop", "own")
BREAKS = ("in", "cut")


# Invariants: of two with equal digests all bounds are equal, under any names.
@frozen
class TradingSessions:
    """Windows of an exchange's trading sessions: ``rp.TradingSessions("XNYS", "2015", "2035")``.

    name: of a calendar in the package exchange-calendars. start, end: the days that the plan
    covers, without the end: a date, or a text such as "2015-03-01" or "2015". table: instead of a
    name, the sessions themselves: columns open and close, break_start and break_end, times with a
    zone; it covers the time from the first open to the last close unless start and end say more.
    every: divides each session into windows of a span such as "30min" from its open; the last one
    is cut short by the close. breaks: "in": a lunch break is a part of its session; "cut": it is
    outside, and divides the session. outside: an event outside of all sessions is a dead letter
    ("refuse"), passed over as by a filter ("drop"), or in a window of its own, from a close to the
    next open ("own"). An event before start or from end on is a dead letter.

    The bounds are read when the plan is made, and are part of it. Raises PlanError.
    """

    outside: str
    digest: str
    name: str = field(compare=False)
    every_ns: int = field(compare=False)
    cuts: bool = field(compare=False)
    text: str = field(compare=False)
    _table: TradingTable = field(compare=False, repr=False)
    _bounds: TradingSpans = field(compare=False, repr=False)

    def __init__(
        self,
        name: str | None = None,
        start: Any = None,
        end: Any = None,
        *,
        table: Any = None,
        every: str | int | None = None,
        breaks: str = "in",
        outside: str = "refuse",
    ) -> None:
        # Pipelines without a calendar start without them.
        from ripple.model.calendar.trading_spans import trading_spans  # noqa: PLC0415
        from ripple.model.window.trading_tables import exchange_table, given_table  # noqa: PLC0415

        for what, given, known in (("breaks", breaks, BREAKS), ("outside", outside, OUTSIDE)):
            if not isinstance(given, str) or given not in known:
                ways = ", ".join(map(repr, known))
                raise PlanError(
                    f"TradingSessions: {what} must be one of {ways}, not {shown(given)}"
                )
        every_ns = 0 if every is None else duration_ns(every, "TradingSessions: every")
        if every is not None and not every_ns:
            raise PlanError(f"TradingSessions: every must be longer than zero, not {shown(every)}")
        if (name is None) == (table is None):
            raise PlanError(
                f"TradingSessions: {'name is missing' if name is None else 'table is given, too'}: "
                "it takes the name of a calendar with its first day and its end, as in "
                '("XNYS", "2015", "2035"), or table='
            )
        try:
            sessions = (
                given_table(table, start, end) if name is None else exchange_table(name, start, end)
            )
        except PlanError as error:
            raise PlanError(f"TradingSessions: {error}") from error
        bounds = trading_spans(sessions, every_ns, cut=breaks == "cut")
        divided = (
            "" if every is None else f" every {every if isinstance(every, str) else f'{every}ns'}"
        )
        text = (
            f"sessions of {name or 'a table'}{divided}, {_covered(sessions)}, "
            f"{len(sessions.bounds_ns)} of {sessions.origin}, digest {bounds.digest[:8]}, "
            f"outside: {outside}"
        )
        for member, value in (
            ("outside", outside),
            ("digest", bounds.digest),
            ("name", name or "a table"),
            ("every_ns", every_ns),
            ("cuts", breaks == "cut"),
            ("text", text),
            ("_table", sessions),
            ("_bounds", bounds),
        ):
            object.__setattr__(self, member, value)

    @property
    def spans(self) -> Spans:
        """The spans of time that the windows are, and those between sessions."""
        return self._bounds.spans

    @property
    def bounds(self) -> TradingSpans:
        """The spans, and which of them are in a session."""
        return self._bounds

    def reason(self, *, is_beyond: bool) -> str:
        """Return why an event is refused."""
        if is_beyond:
            return (
                f"the event time is not in the calendar of {self.name}, {self.covered}: extend it"
            )
        return f"the event time is outside of the sessions of {self.name}"

    @property
    def bounds_ns(self) -> Ints:
        """Open, close, and begin and end of the break of each session: int64[k, 4]."""
        return self._table.bounds_ns

    @property
    def covered_ns(self) -> tuple[int, int]:
        """The begin and the end of the calendar."""
        return self._table.start_ns, self._table.end_ns

    @property
    def covered(self) -> str:
        """The begin and the end of the calendar, for users."""
        return _covered(self._table)

    @property
    def table(self) -> pa.Table:
        """The sessions: open, close, break_start and break_end, as ``table=`` takes them.

        Written to a file and edited, it is a calendar that no release of a package changes.
        """
        from ripple.model.window.trading_tables import shown_table  # noqa: PLC0415 - as above

        return shown_table(self._table.bounds_ns)


def _covered(table: TradingTable) -> str:
    return f"{instant_text(table.start_ns)} to {instant_text(table.end_ns)}"

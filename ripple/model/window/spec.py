"""The declaration of windows: the assigner, the trigger, and the allowed lateness."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, TypeAlias

from ripple.core.arguments import need_whole, shown
from ripple.core.calls import called
from ripple.core.errors import PlanError
from ripple.core.frozen import frozen
from ripple.model.window.duration import duration_ns, signed_duration_ns
from ripple.model.window.trading_sessions import TradingSessions

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from ripple.model.calendar.spans import Spans

    Ints = npt.NDArray[np.int64]

LATENESS_DEFAULT = "60s"
FUTURE_TOLERANCE_DEFAULT = "60s"
WINDOWS_PER_EVENT_MAX = 10_000
LAST_ROWS_MAX = 10_000

_OF_A_CALENDAR = re.compile(r"\s*[0-9]+\s*(?:w|mo|q|y)\s*")


@frozen
class Tumbling:
    """Windows of one size, end to end, aligned to the epoch. Each event is in exactly one.

    With ``zone="America/New_York"`` they are spans of its calendar: size may be in d, w (from
    Monday), mo, q and y of its clocks, and begins them at midnight or ``offset`` after it
    (``offset="9h30min"``, below zero before it). Smaller units divide each day, from its begin.
    """

    size_ns: int

    def __new__(cls, *given: Any, zone: Any = None, **named: Any) -> Any:
        """Make windows of another kind for a zone."""
        return object.__new__(cls) if zone is None else ZonedTumbling(*given, zone=zone, **named)

    @called("rp.Tumbling", '"1min"')
    def __init__(
        self, size: str | int, *, zone: str | None = None, offset: str | int | None = None
    ) -> None:
        if zone is not None or offset is not None:
            raise PlanError("Tumbling: offset is of a zone's days: name one, as in zone='UTC'")
        if isinstance(size, str) and _OF_A_CALENDAR.fullmatch(size):
            raise PlanError(f"Tumbling: size {size!r} is of a calendar: add zone='UTC', or another")
        object.__setattr__(self, "size_ns", _positive(size, "Tumbling: size"))


@frozen
class ZonedTumbling:
    """Windows of a zone's calendar, as ``Tumbling`` with ``zone=`` makes them.

    size: such as "1d". offset_s: of their begins on the clock, from midnight. digest: of all
    bounds, so that another release of the zone makes another node.
    """

    size: str
    zone: str
    offset_s: int
    digest: str

    def __init__(self, size: str, *, zone: str, offset: str | int | None = None) -> None:
        # What has no zone starts without them.
        from ripple.model.calendar.spans import DAY_S, normal_size, spans  # noqa: PLC0415
        from ripple.model.calendar.zone import need_zone  # noqa: PLC0415

        normal = normal_size("Tumbling: size", size)
        name = need_zone("Tumbling: zone", zone).name
        offset_ns = 0 if offset is None else signed_duration_ns(offset, "Tumbling: offset")
        nominal_ns = max(spans(normal, name).nominal_ns, DAY_S * 10**9)
        if offset_ns % 10**9 or abs(offset_ns) >= nominal_ns:
            raise PlanError(
                "Tumbling: offset must be whole seconds and shorter than a window, or a day where "
                f"windows divide it, not {shown(offset)}"
            )
        offset_s = offset_ns // 10**9
        for field, value in (("size", normal), ("zone", name), ("offset_s", offset_s)):
            object.__setattr__(self, field, value)
        object.__setattr__(self, "digest", self.spans.digest)

    @property
    def spans(self) -> Spans:
        """The spans of time that the windows are."""
        from ripple.model.calendar.spans import spans  # noqa: PLC0415 - as above

        return spans(self.size, self.zone, self.offset_s)


@frozen
class Sliding:
    """Windows of one size that start every ``slide``. An event is in about size / slide of them."""

    size_ns: int
    slide_ns: int

    @called("rp.Sliding", '"5min"', '"1min"')
    def __init__(self, size: str | int, slide: str | int) -> None:
        size_ns, slide_ns = _positive(size, "Sliding: size"), _positive(slide, "Sliding: slide")
        if slide_ns > size_ns:
            raise PlanError(
                f"Sliding: slide ({slide!r}) exceeds size ({size!r}), so some events would be in "
                "no window: choose a slide of at most the size"
            )
        object.__setattr__(self, "size_ns", size_ns)
        object.__setattr__(self, "slide_ns", slide_ns)
        if windows_per_event(self) > WINDOWS_PER_EVENT_MAX:
            raise PlanError(
                f"Sliding: {size!r} / {slide!r} puts each event in more than "
                f"{WINDOWS_PER_EVENT_MAX} windows: choose a longer slide"
            )


@frozen
class Session:
    """Windows that last as long as events keep coming within ``gap`` of each other.

    An event at t alone is the session [t, t + gap); sessions that overlap are one. An event
    exactly ``gap`` after the last one starts a new session, since the end is exclusive.
    """

    gap_ns: int

    @called("rp.Session", '"30min"')
    def __init__(self, gap: str | int) -> None:
        object.__setattr__(self, "gap_ns", _positive(gap, "Session: gap"))


@frozen
class Last:
    """The last rows of a key, up to each row itself, in the order of event time; of ``.scan``.

    rows: how many, at most 10,000; the first rows of a key have fewer.
    """

    rows: int

    @called("rp.Last", "20")
    def __init__(self, rows: int) -> None:
        object.__setattr__(self, "rows", need_whole("Last: rows", rows, 1, most=LAST_ROWS_MAX))


Assigner: TypeAlias = Tumbling | ZonedTumbling | TradingSessions | Sliding | Session


def ends_ns(assigner: Assigner, starts_ns: Ints) -> Ints:
    """Return the exclusive ends of windows that start then; of sessions, the earliest ones."""
    if isinstance(assigner, ZonedTumbling | TradingSessions):
        return assigner.spans.ends_of(starts_ns)
    return starts_ns + (assigner.gap_ns if isinstance(assigner, Session) else assigner.size_ns)


def windows_per_event(assigner: Assigner) -> int:
    """Return how many windows an event is in, at most."""
    return -(-assigner.size_ns // assigner.slide_ns) if isinstance(assigner, Sliding) else 1


@frozen
class OnWatermark:
    """Show a window when the watermark reaches its end, and every later change to it."""


@frozen
class OnEveryElement:
    """Show a window from its first event on, always at its current value."""


@frozen
class OnInterval:
    """Show open windows each time that the watermark crosses a multiple of ``interval``.

    Event time, not the clock, so that a replay shows the same. The rows shown include the event
    that made the watermark cross, which counts even if a step drops it; the first watermark of all
    counts as crossing. From its end on a window behaves as with :class:`OnWatermark`.

    With several inputs, which events a window has at the crossing depends on the order in which
    the inputs were read, and so do partial results; rows shown from the end on do not.
    """

    interval_ns: int

    @called("rp.OnInterval", '"1s"')
    def __init__(self, interval: str | int) -> None:
        object.__setattr__(self, "interval_ns", _positive(interval, "OnInterval: interval"))


@frozen
class OnCount:
    """Show a window at every ``count``-th of its events; from its end on as OnWatermark.

    A session that joins others counts the events of all, and is not shown for a multiple that it
    thereby passes over; a growing session keeps its shown result until it is shown again.
    Partial results depend on the order of several inputs, as with :class:`OnInterval`.
    """

    count: int

    @called("rp.OnCount", "100")
    def __init__(self, count: int) -> None:
        object.__setattr__(self, "count", need_whole("OnCount: count", count, 1))


Trigger: TypeAlias = OnWatermark | OnEveryElement | OnInterval | OnCount


@frozen
class WindowSpec:
    """A validated window step.

    lateness_ns: how far below its input's watermark an event may be and still count.
    future_ns: how far ahead of it an event may be before it is flagged (and still applied).
    """

    name: str
    assigner: Assigner
    trigger: Trigger
    lateness_ns: int
    future_ns: int

    @property
    def shows_partial(self) -> bool:
        """Whether it shows partial results, which depend on the order of reading."""
        return isinstance(self.trigger, OnCount | OnInterval)


def window_spec(
    name: str,
    assigner: Assigner,
    *,
    trigger: Trigger | None = None,
    lateness: str | int = LATENESS_DEFAULT,
    future: str | int = FUTURE_TOLERANCE_DEFAULT,
) -> WindowSpec:
    """Return the checked form of a ``.window(...)`` step; raises :class:`PlanError`."""
    if isinstance(assigner, Last):
        raise PlanError(
            f"rp.Last({assigner.rows}) counts rows in their order, and windows are spans of time: "
            f"write .scan('last', key=..., settled=True, window=rp.Last({assigner.rows}), "
            "mean=rp.mean(...)) before .partition(...), which adds its results to each row"
        )
    if not isinstance(assigner, (Tumbling, ZonedTumbling, TradingSessions, Sliding, Session)):
        raise PlanError(
            "assigner must be rp.Tumbling, rp.Sliding, rp.Session or rp.TradingSessions, not "
            f"{shown(assigner)}"
        )
    if trigger is not None and not isinstance(
        trigger, (OnWatermark, OnEveryElement, OnInterval, OnCount)
    ):
        raise PlanError(
            "trigger must be rp.OnWatermark, rp.OnEveryElement, rp.OnInterval or rp.OnCount, not "
            f"{shown(trigger)}"
        )
    late_ns, future_ns = duration_ns(lateness, "lateness"), duration_ns(future, "future")
    return WindowSpec(name, assigner, trigger or OnWatermark(), late_ns, future_ns)


def _positive(span: str | int, what: str) -> int:
    value_ns = duration_ns(span, what)
    if value_ns == 0:
        raise PlanError(f"{what} must be longer than zero, not {shown(span)}")
    return value_ns

"""The windows of a fold as plain lists of events, and their rows by trigger."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ripple.model.calendar.definition import span_at
from ripple.model.window.spec import (
    Assigner,
    OnCount,
    OnEveryElement,
    OnInterval,
    OnWatermark,
    Session,
    Trigger,
    Tumbling,
    ZonedTumbling,
)
from ripple.model.window.trading_sessions import TradingSessions
from ripple.testing.reference.trading import trading_window_at

Key = tuple[Any, ...]


@dataclass(frozen=True)
class Event:
    """An accepted event: its row after all steps, and its place in time.

    order: breaks ties of event time: the offset, then the rank of the input.
    """

    key: Key
    time_ns: int
    order: tuple[int, ...]
    row: dict[str, Any]


@dataclass(eq=False)
class Window:
    """The events of one key in [start_ns, end_ns)."""

    key: Key
    start_ns: int
    end_ns: int
    events: list[Event] = field(default_factory=list)


def windows_with(open_windows: list[Window], assigner: Assigner, event: Event) -> list[Window]:
    """Return the windows that the event belongs to, with it in them.

    ``open_windows`` comes to hold new windows, and instead of sessions that the event joins their
    union.
    """
    if isinstance(assigner, Session):
        return [_session_with(open_windows, assigner.gap_ns, event)]
    found = [
        _window_at(open_windows, event.key, *bounds)
        for bounds in bounds_of(assigner, event.time_ns)
    ]
    for window in found:
        window.events.append(event)
    return found


def bounds_of(assigner: Assigner, time_ns: int) -> list[tuple[int, int]]:
    """Return start and end of every window, no session, that holds ``time_ns``."""
    assert not isinstance(assigner, Session)
    if isinstance(assigner, TradingSessions):
        found = trading_window_at(assigner, time_ns)
        return [] if found is None else [found]
    if isinstance(assigner, ZonedTumbling):
        return [span_at(assigner.size, assigner.zone, assigner.offset_s, time_ns)]
    size_ns = assigner.size_ns
    slide_ns = size_ns if isinstance(assigner, Tumbling) else assigner.slide_ns
    latest = time_ns - time_ns % slide_ns  # Python's % is never negative here
    starts = range(latest, time_ns - size_ns, -slide_ns)
    return [(start_ns, start_ns + size_ns) for start_ns in starts]


def _window_at(open_windows: list[Window], key: Key, start_ns: int, end_ns: int) -> Window:
    for window in open_windows:
        if (window.key, window.start_ns) == (key, start_ns):
            return window
    open_windows.append(Window(key, start_ns, end_ns))
    return open_windows[-1]


def _session_with(open_windows: list[Window], gap_ns: int, event: Event) -> Window:
    alone = Window(event.key, event.time_ns, event.time_ns + gap_ns, [event])
    joined = [
        window
        for window in open_windows
        if window.key == alone.key
        and window.start_ns < alone.end_ns
        and alone.start_ns < window.end_ns
    ]
    parts = [*joined, alone]
    session = Window(
        event.key,
        min(window.start_ns for window in parts),
        max(window.end_ns for window in parts),
        [member for window in parts for member in window.events],
    )
    for window in joined:
        open_windows.remove(window)
    open_windows.append(session)
    return session


def due(
    trigger: Trigger,
    touched: list[Window],
    open_windows: list[Window],
    before_ns: int | None,
    after_ns: int | None,
) -> list[Window]:
    """Return the windows that show their rows now, by the trigger alone.

    touched: the windows that just got an event. before_ns, after_ns: the merged watermark, None
    while
    an input has none.
    """
    match trigger:
        case OnEveryElement():
            return touched
        case OnCount():
            return [window for window in touched if len(window.events) % trigger.count == 0]
        case OnInterval():
            return open_windows if entered(trigger.interval_ns, before_ns, after_ns) else []
        case OnWatermark():
            return []


def entered(interval_ns: int, before_ns: int | None, after_ns: int | None) -> bool:
    """Return whether the watermark entered another [k * interval, (k + 1) * interval)."""
    if after_ns is None:
        return False
    return before_ns is None or after_ns // interval_ns > before_ns // interval_ns

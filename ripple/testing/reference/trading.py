"""Windows of trading sessions by definition: a look at one session after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.model.window import TradingSessions
from ripple.testing.reference.steps import RefusedRow

if TYPE_CHECKING:
    from ripple.model.window import WindowSpec

Bounds = tuple[int, int]


def trading_window_at(sessions: TradingSessions, time_ns: int) -> Bounds | None:
    """Return the bounds of the window of an event, None where it has none."""
    open_ones = _open(sessions)
    inside = [one for one in open_ones if one[0] <= time_ns < one[1]]
    if not inside and sessions.outside != "own":
        return None
    start_ns, end_ns = sessions.covered_ns
    begin_ns = max([start_ns, *(one for pair in open_ones for one in pair if one <= time_ns)])
    until_ns = min([end_ns, *(one for pair in open_ones for one in pair if one > time_ns)])
    if sessions.every_ns:
        begin_ns += (time_ns - begin_ns) // sessions.every_ns * sessions.every_ns
        until_ns = min(until_ns, begin_ns + sessions.every_ns)
    return begin_ns, until_ns


def refuse_outside(spec: WindowSpec | None, time_ns: int) -> None:
    """Raise RefusedRow for an event that a calendar refuses."""
    sessions = None if spec is None else spec.assigner
    if spec is None or not isinstance(sessions, TradingSessions):
        return
    start_ns, end_ns = sessions.covered_ns
    is_beyond = not start_ns <= time_ns < end_ns
    is_inside = any(begin <= time_ns < end for begin, end in _open(sessions))
    if is_beyond or (sessions.outside == "refuse" and not is_inside):
        raise RefusedRow(spec.name, sessions.reason(is_beyond=is_beyond))


def _open(sessions: TradingSessions) -> list[Bounds]:
    """Return the spans in which sessions are open."""
    found = []
    for row in sessions.bounds_ns.tolist():
        begin, end, pause, on = row
        found += [(begin, pause), (on, end)] if sessions.cuts else [(begin, end)]
    return [(begin, end) for begin, end in found if begin < end]

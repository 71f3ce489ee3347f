"""The open windows of one fold: which slot an event's window has, when it ends, when it is over.

These share one interface: windows with bounds from event time alone (tumbling, sliding), spans of a
zone's calendar or of trading sessions, and sessions, with bounds from the events.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from ripple.model.window import assign
from ripple.model.window.sessions import SessionBook
from ripple.model.window.spec import Assigner, Session, Tumbling, ZonedTumbling
from ripple.model.window.trading_sessions import TradingSessions

if TYPE_CHECKING:
    import numpy.typing as npt

    from ripple.model.calendar.spans import Spans
    from ripple.model.keys.space import PairKeys
    from ripple.model.schema.exported import Lent

    Ints = npt.NDArray[np.int64]


_NO_SLOTS = np.empty(0, np.int64)


class Assigned(NamedTuple):
    """The windows of a batch's events.

    rows: the index of the event of each entry, None when it is the identity; slots: its
    window. absorbed, into: sessions that became part of others in this batch.
    """

    rows: Ints | None
    slots: Ints
    absorbed: Ints
    into: Ints


class Windows(Protocol):
    """Windows of one shape over slots of (key, window start)."""

    def assign(self, keys: Ints, times_ns: Ints | Lent) -> Assigned:
        """Return the window of each event; ``keys`` are slots of the event's key."""

    def ends_ns(self, slots: Ints) -> Ints:
        """Return the exclusive end of each window."""

    def ended(self, slots: Ints, until_ns: int) -> Ints:
        """Return those of the windows that end by ``until_ns``."""

    def forget(self, slots: Ints) -> None:
        """Drop windows that are over, before their slots are released."""


class AlignedWindows:
    """Tumbling and sliding windows."""

    def __init__(self, space: PairKeys, size_ns: int, slide_ns: int) -> None:
        self._space = space
        self._size_ns = size_ns
        self._slide_ns = slide_ns
        self.tumbling = assign.Tumbling(space.index, size_ns) if slide_ns == size_ns else None

    def assign(self, keys: Ints, times_ns: Ints | Lent) -> Assigned:
        """Return the window, or the windows, of each event."""
        if self.tumbling is not None:
            return Assigned(None, self.tumbling.slots(keys, times_ns), _NO_SLOTS, _NO_SLOTS)
        rows, starts = assign.sliding(times_ns, self._size_ns, self._slide_ns)
        return Assigned(rows, self._space.slots_of(keys[rows], starts), _NO_SLOTS, _NO_SLOTS)

    def ends_ns(self, slots: Ints) -> Ints:
        """Return start + size."""
        return self._space.index.pairs_at(slots)[1] + self._size_ns

    def ended(self, slots: Ints, until_ns: int) -> Ints:
        """Return those of the windows that end by ``until_ns``."""
        return assign.ended(self._space.index, slots, self._size_ns, until_ns)

    def forget(self, slots: Ints) -> None:
        """There is no state besides the slots."""


class ZonedWindows:
    """Windows of a zone's calendar."""

    def __init__(self, space: PairKeys, spans: Spans) -> None:
        self._space = space
        self._spans = spans
        self.tumbling = assign.Zoned(space.index, spans.begins_ns, spans.elapsed_ns)

    def assign(self, keys: Ints, times_ns: Ints | Lent) -> Assigned:
        """Return the window of each event."""
        return Assigned(None, self.tumbling.slots(keys, times_ns), _NO_SLOTS, _NO_SLOTS)

    def ends_ns(self, slots: Ints) -> Ints:
        """Return where the next span of the day, or of the calendar, begins."""
        return self._spans.ends_of(self._space.index.pairs_at(slots)[1])

    def ended(self, slots: Ints, until_ns: int) -> Ints:
        """Return those of the windows that end by ``until_ns``."""
        return slots[self.ends_ns(slots) <= until_ns]

    def forget(self, slots: Ints) -> None:
        """There is no state besides the slots."""


class TradingWindows(ZonedWindows):
    """Windows of trading sessions, of which some events have none."""

    def __init__(self, space: PairKeys, sessions: TradingSessions) -> None:
        super().__init__(space, sessions.spans)
        self.sessions = sessions
        self._drops = sessions.outside == "drop"

    def assign(self, keys: Ints, times_ns: Ints | Lent) -> Assigned:
        """Return the window of each event in a session, or in a window of its own."""
        bounds, times = self.sessions.bounds, np.asarray(times_ns)
        if not self._drops or bounds.are_open(times):
            return super().assign(keys, times_ns)
        rows = np.flatnonzero(bounds.is_open[bounds.places_of(times)])
        slots = self.tumbling.slots(keys[rows], times[rows])
        return Assigned(rows, slots, _NO_SLOTS, _NO_SLOTS)

    @property
    def drops(self) -> bool:
        """Whether some events may be in no window."""
        return self._drops

    def refused(self, times_ns: Ints | Lent) -> dict[int, str]:
        """Return the events that the calendar refuses, with the reason."""
        bounds, times = self.sessions.bounds, np.asarray(times_ns)
        if bounds.are_open(times):
            return {}
        places = bounds.places_of(times)
        is_beyond = bounds.is_beyond(places)
        odd = is_beyond
        if self.sessions.outside == "refuse":
            odd = odd | ~bounds.is_open[places]
        reasons = [self.sessions.reason(is_beyond=one) for one in (False, True)]
        return {at: reasons[int(is_beyond[at])] for at in np.flatnonzero(odd).tolist()}


class SessionWindows:
    """Session windows."""

    def __init__(self, space: PairKeys, gap_ns: int) -> None:
        self._space = space
        self.book = SessionBook(gap_ns)

    def assign(self, keys: Ints, times_ns: Ints | Lent) -> Assigned:
        """Return the session of each event and the sessions that were joined."""
        slots, absorbed, into = self.book.assign(keys, times_ns, self._space.index)
        return Assigned(None, slots, absorbed, into)

    def ends_ns(self, slots: Ints) -> Ints:
        """Return the time of the last event plus the gap."""
        return self.book.ends_ns(slots)

    def ended(self, slots: Ints, until_ns: int) -> Ints:
        """Return those of the sessions that end by ``until_ns``."""
        return slots[self.ends_ns(slots) <= until_ns]

    def forget(self, slots: Ints) -> None:
        """Drop the sessions."""
        self.book.forget(self._space.index.pairs_at(slots)[0], slots)


def windows_of(assigner: Assigner, space: PairKeys) -> Windows:
    """Return the windows that ``assigner`` describes, over slots of (key, window start)."""
    if isinstance(assigner, Session):
        return SessionWindows(space, assigner.gap_ns)
    if isinstance(assigner, TradingSessions):
        return TradingWindows(space, assigner)
    if isinstance(assigner, ZonedTumbling):
        return ZonedWindows(space, assigner.spans)
    if isinstance(assigner, Tumbling):
        return AlignedWindows(space, assigner.size_ns, assigner.size_ns)
    return AlignedWindows(space, assigner.size_ns, assigner.slide_ns)

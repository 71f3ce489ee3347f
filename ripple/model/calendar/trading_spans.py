"""Trading sessions as data: when they open and close, and their breaks.

The bounds are part of a plan: a run reads no calendar of its machine.
"""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ripple.core.frozen import frozen
from ripple.model.calendar.spans import Spans

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

_LEAST_NS, _LAST_NS = -(1 << 63), (1 << 63) - 1


# Invariants: open <= break begin <= break end <= close <= the next open, open < close; without a
# break, both of its bounds are the close. Nothing is changed.
@frozen(eq=False)
class TradingTable:
    """The sessions from ``start_ns`` until ``end_ns``.

    bounds_ns: int64[k, 4]: open, close, begin and end of the break. origin: for users.
    """

    bounds_ns: Ints
    start_ns: int
    end_ns: int
    origin: str


# Invariants: is_open has a place for each of the spans; the first and the last are beyond the
# calendar, and not open.
@frozen(eq=False)
class TradingSpans:
    """Spans of sessions, and of the times between them. digest: of both."""

    spans: Spans
    is_open: Mask
    digest: str

    def places_of(self, times_ns: Ints) -> Ints:
        """Return the span of each instant."""
        last = len(self.spans.begins_ns) - 2
        places: Ints = np.searchsorted(self.spans.begins_ns, times_ns, side="right") - 1
        return np.minimum(places, last)

    def are_open(self, times_ns: Ints) -> bool:
        """Return whether all instants are in one session, as mostly in a batch."""
        if not len(times_ns):
            return True
        (place,) = self.places_of(times_ns.min(keepdims=True))
        return bool(self.is_open[place] and times_ns.max() < self.spans.begins_ns[place + 1])

    def starts_of(self, times_ns: Ints, *, own: bool) -> tuple[Ints, Mask]:
        """Return where the window of each instant starts, and where there is one.

        own: also the times between sessions have windows.
        """
        places = self.places_of(times_ns)
        found = ~self.is_beyond(places) if own else self.is_open[places]
        return self.spans.begins_of(times_ns), found

    def packed(self) -> str:
        """Return all of it as a text, for ``unpacked``."""
        begins = self.spans.begins_ns.astype("<i8").tobytes()
        parts = (begins, np.packbits(self.is_open, bitorder="little").tobytes())
        texts = (base64.b64encode(part).decode() for part in parts)
        return " ".join((str(self.spans.elapsed_ns), *texts))

    def is_beyond(self, places: Ints) -> Mask:
        """Return which of the places are before the calendar's begin or after its end."""
        beyond: Mask = (places == 0) | (places == len(self.is_open) - 1)
        return beyond


@lru_cache(maxsize=16)
def unpacked(text: str) -> TradingSpans:
    """Return the spans of a text that ``TradingSpans.packed`` made."""
    elapsed, *texts = text.split(" ")
    begins, is_open = (base64.b64decode(part) for part in texts)
    begins_ns = np.frombuffer(begins, "<i8").astype(np.int64)
    flags = np.unpackbits(np.frombuffer(is_open, np.uint8), bitorder="little")
    return _spans(begins_ns, flags[: len(begins_ns) - 1].astype(np.bool_), int(elapsed))


class OfSessions(Protocol):
    """Bounds of sessions, as ``rp.TradingSessions`` has them."""

    @property
    def bounds(self) -> TradingSpans:
        """The spans, and which of them are in a session."""

    @property
    def outside(self) -> str:
        """The rule for times outside of all sessions."""


def trading_spans(table: TradingTable, every_ns: int, *, cut: bool) -> TradingSpans:
    """Return the spans of sessions, divided into ones of ``every_ns``, and of their breaks if cut.

    every_ns: 0: not divided.
    """
    edges = table.bounds_ns if cut else table.bounds_ns[:, :2]
    begins = edges[:, ::2] if not cut else edges[:, [0, 3]]
    ends = edges[:, 1::2] if not cut else edges[:, [2, 1]]
    # One of no length has no bounds: a break at an open or at a close leaves one there.
    begins, ends = (side[begins < ends] for side in (begins, ends))
    first = np.concatenate((begins, ends, [table.start_ns, table.end_ns]))
    is_begin = np.arange(len(first)) < begins.size
    order = np.lexsort((is_begin, first))
    first, is_begin = first[order], is_begin[order]
    kept = np.append(first[1:] != first[:-1], True)  # of equal bounds the begin of a session
    begins_ns = np.concatenate(([_LEAST_NS], first[kept], [_LAST_NS]))
    is_open = np.concatenate(([False], is_begin[kept]))
    is_open[-1] = False
    return _spans(begins_ns, is_open, every_ns)


def _spans(begins_ns: Ints, is_open: Mask, every_ns: int) -> TradingSpans:
    for column in (begins_ns, is_open):
        column.setflags(write=False)
    text = begins_ns.tobytes() + is_open.tobytes() + str(every_ns).encode()
    digest = hashlib.blake2b(text, digest_size=16).hexdigest()
    nominal_ns = every_ns or int(np.diff(begins_ns[1:-1]).max(initial=1))
    return TradingSpans(Spans(begins_ns, every_ns, nominal_ns, digest), is_open, digest)

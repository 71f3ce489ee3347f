"""Spans of a zone's calendar: where days, weeks, months, quarters and years of its clocks begin.

A local day is all from the first instant at which clocks show its date or a later one until the
first at which they show the next one: 23 to 25 hours mostly, none where clocks skip a date. Spans
of hours, minutes and seconds begin with the local day and count elapsed time; the last one of a
day is cut short by its end. So each instant is in exactly one span.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from ripple.core.arguments import shown
from ripple.core.errors import PlanError
from ripple.core.frozen import frozen
from ripple.model.calendar.zone import FIRST_S, LAST_S, zone

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

DAY_S = 86_400
COUNT_MAX = 100_000
UNITS = ("ms", "s", "m", "min", "h", "d", "w", "mo", "q", "y")

_SIZE = re.compile(r"([0-9]{1,9})\s*(ms|s|min|m|h|d|w|mo|q|y)")
_ELAPSED_NS = {"ms": 10**6, "s": 10**9, "m": 60 * 10**9, "min": 60 * 10**9, "h": 3_600 * 10**9}
_MONTHS = {"mo": 1, "q": 3, "y": 12}
_MONDAY = 3  # days from a Monday to 1970-01-01
_LEAST_NS, _LAST_NS = -(1 << 63), (1 << 63) - 1


# Invariants: begins_ns ascends; the first is the least and the last the greatest of 64 bits, so
# each instant but the greatest has a span; nothing is changed.
@frozen(eq=False)
class Spans:
    """The spans of one size in one zone, each from its begin to the next one's.

    begins_ns: int64[k], of days and longer spans. elapsed_ns: the size of the spans that divide
    them, 0 if they are not divided. digest: of both. nominal_ns: about how long a span is.
    """

    begins_ns: Ints
    elapsed_ns: int
    nominal_ns: int
    digest: str

    def begins_of(self, times_ns: Ints) -> Ints:
        """Return where the span of each instant begins."""
        if not len(times_ns):
            return np.empty(0, np.int64)
        # Mostly all times of a batch are of one day.
        (first,) = self._places(times_ns.min(keepdims=True))
        is_one = times_ns.max() < self.begins_ns[first + 1]
        places = np.full(len(times_ns), first) if is_one else self._places(times_ns)
        begins: Ints = self.begins_ns[places]
        if self.elapsed_ns:
            begins += (times_ns - begins) // self.elapsed_ns * self.elapsed_ns
        return begins

    def ends_of(self, begins_ns: Ints) -> Ints:
        """Return where spans end that begin at these instants."""
        ends: Ints = self.begins_ns[self._places(begins_ns) + 1]
        if self.elapsed_ns:
            ends = begins_ns + np.minimum(ends - begins_ns, self.elapsed_ns)
        return ends

    def _places(self, times_ns: Ints) -> Ints:
        last = len(self.begins_ns) - 2  # the greatest time belongs to the last span
        places: Ints = np.searchsorted(self.begins_ns, times_ns, side="right") - 1
        return np.minimum(places, last)


@lru_cache(maxsize=64)
def spans(size: str, name: str, offset_s: int = 0) -> Spans:
    """Return the spans of ``size`` in the zone of this name.

    size: as ``normal_size`` gives it. offset_s: of their begins on the clock, from midnight. Raises
    PlanError for an unknown zone.
    """
    found = _SIZE.fullmatch(size)
    assert found is not None, size
    count, unit = int(found[1]), found[2]
    elapsed_ns = _ELAPSED_NS.get(unit, 0) * count
    locals_s, nominal_ns = _locals_s(count, unit)
    instants = zone(name).reached_s(locals_s + offset_s)
    inner = instants[(instants > FIRST_S + 2 * DAY_S) & (instants < LAST_S - 2 * DAY_S)]
    inner = inner[np.append(True, np.diff(inner) > 0)]  # clocks may skip a day
    begins = np.concatenate(([_LEAST_NS], inner * 10**9, [_LAST_NS]))
    begins.setflags(write=False)
    digest = hashlib.blake2b(begins.tobytes() + str(elapsed_ns).encode(), digest_size=16)
    return Spans(begins, elapsed_ns, elapsed_ns or nominal_ns, digest.hexdigest())


def normal_size(what: str, size: object) -> str:
    """Return a size such as "1d", "2 w", "15min" or "3mo" in its one spelling, as in "15m".

    Raises PlanError, which calls it ``what``, for anything else, for none of a unit, and for spans
    that divide days and are not shorter than one.
    """
    found = _SIZE.fullmatch(size.strip()) if isinstance(size, str) else None
    if found is None:
        raise PlanError(
            f"{what} must be a number and a unit ({', '.join(UNITS)}) with zone=, as in '1d', not "
            f"{shown(size)}"
        )
    count, unit = int(found[1]), "m" if found[2] == "min" else found[2]
    if unit in _ELAPSED_NS and not 0 < count * _ELAPSED_NS[unit] < DAY_S * 10**9:
        raise PlanError(
            f"{what} must be longer than zero and shorter than a day with zone=, since spans of "
            f"time begin anew each day there, not {shown(size)}: write 1d for days"
        )
    if unit not in _ELAPSED_NS and not 0 < count <= COUNT_MAX:
        raise PlanError(f"{what} must be 1 to {COUNT_MAX} of its unit, not {shown(size)}")
    return f"{count}{unit}"


def _locals_s(count: int, unit: str) -> tuple[Ints, int]:
    """Return what clocks show where spans begin, in seconds, and about how long these are in ns.

    Days and weeks are counted from 1970 and its first Monday's week, months from year 0.
    """
    first, last = FIRST_S // DAY_S, LAST_S // DAY_S + 1
    if unit in _MONTHS:
        step = count * _MONTHS[unit]
        begin, end = (int(np.datetime64(at, "D").astype("datetime64[M]").astype(int))
                      for at in (first, last))  # fmt: skip
        from_zero = np.arange((begin + 1970 * 12) // step * step, end + 1970 * 12 + 1, step)
        days = (from_zero - 1970 * 12).astype("datetime64[M]").astype("datetime64[D]")
        return days.astype(np.int64) * DAY_S, step * 365 * DAY_S * 10**9 // 12
    step, shift = (7 * count, _MONDAY) if unit == "w" else (count if unit == "d" else 1, 0)
    from_shift = np.arange((first + shift) // step * step, last + shift + 1, step, dtype=np.int64)
    return (from_shift - shift) * DAY_S, step * DAY_S * 10**9

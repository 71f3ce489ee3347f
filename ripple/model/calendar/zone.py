"""Time zones: offsets from UTC by instant, from the package ``tzdata``.

The machine's own files, which Python's ``zoneinfo`` prefers, differ between machines: of some 600
zones, dozens have other offsets in a year-old release. All of a zone is read when a plan is made,
and its digest is part of the plan, so that workers with another release of a zone are told apart.
"""

from __future__ import annotations

import hashlib
import struct
from bisect import bisect_right
from datetime import datetime
from functools import lru_cache
from importlib.resources import files
from io import BytesIO
from itertools import pairwise
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import numpy as np

from ripple.core.arguments import shown
from ripple.core.errors import PlanError
from ripple.core.frozen import frozen

if TYPE_CHECKING:
    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Mask = npt.NDArray[np.bool_]

# All of 64 bits of nanoseconds, and two days more: 1677 to 2262.
FIRST_S, LAST_S = -(1 << 63) // 10**9 - 2 * 86_400, (1 << 63) // 10**9 + 2 * 86_400
ZONES_SUGGESTED = 3

_LEAST_S = -((1 << 63) // 10**9)  # whole seconds of 64 bits of nanoseconds

_STEP_S = 28 * 86_400  # rules of years to come change clocks months apart


# Invariants: begins_s ascends, begins_s[0] is FIRST_S; neighbours' offsets differ; none is changed.
@frozen(eq=False)
class Zone:
    """A time zone.

    begins_s: int64[k], the instants from which on an offset holds. offsets_s: int64[k], local time
    less UTC. version: of tzdata. digest: of both arrays.
    """

    name: str
    begins_s: Ints
    offsets_s: Ints
    version: str
    digest: str

    def offsets_ns(self, times_ns: Ints) -> Ints:
        """Return what clocks show at each instant, less UTC."""
        seconds = np.floor_divide(times_ns, 10**9)
        at = np.searchsorted(self.begins_s, seconds, side="right") - 1
        offsets: Ints = self.offsets_s[at] * 10**9
        return offsets

    def instants_ns(self, locals_ns: Ints) -> tuple[Ints, Mask]:
        """Return the instant at which clocks show each time, and where there is just one.

        Clocks that are set forward skip times, and those that are set back show some twice.
        """
        locals_s, rest_ns = np.divmod(locals_ns, 10**9)
        first = self.reached_s(locals_s)
        at = np.searchsorted(self.begins_s, first, side="right") - 1
        # The last offset under which clocks may show it: all later ones begin with later times.
        begins = np.minimum.accumulate((self.begins_s + self.offsets_s)[::-1])[::-1]
        last = np.searchsorted(begins, locals_s, side="right") - 1
        is_one = (first + self.offsets_s[at] == locals_s) & (last == at)
        is_one &= (first > _LEAST_S) & (first < -_LEAST_S)
        return np.where(is_one, first, 0) * 10**9 + rest_ns, is_one

    def reached_s(self, locals_s: Ints) -> Ints:
        """Return the first instant at which clocks show each time or a later one.

        Where clocks are set back, the first of two instants; where they are set forward over it,
        the instant of that.
        """
        ends = np.append(self.begins_s[1:], LAST_S)
        latest = np.maximum.accumulate(ends + self.offsets_s)  # shown, exclusive, until then
        at = np.minimum(np.searchsorted(latest, locals_s, side="right"), len(ends) - 1)
        reached: Ints = np.maximum(self.begins_s[at], locals_s - self.offsets_s[at])
        return reached


@lru_cache(maxsize=64)
def zone(name: str) -> Zone:
    """Return the zone of a name such as ``"America/New_York"`` or ``"UTC"``.

    Raises PlanError for a name that tzdata does not have.
    """
    import tzdata  # type: ignore[import-untyped]  # noqa: PLC0415 - most pipelines have no zone

    place = files("tzdata")
    names = (place / "zones").read_text().split()
    if name not in names:
        raise PlanError(_unknown(name, names, tzdata.IANA_VERSION))
    packed = place.joinpath("zoneinfo", *name.split("/")).read_bytes()
    clocks = ZoneInfo.from_file(BytesIO(packed), key=name)
    begins, offsets = _changes(clocks, _listed(packed))
    digest = hashlib.blake2b(begins.tobytes() + offsets.tobytes(), digest_size=16).hexdigest()
    for column in (begins, offsets):
        column.setflags(write=False)
    return Zone(name, begins, offsets, tzdata.IANA_VERSION, digest)


def need_zone(what: str, name: object) -> Zone:
    """Return the zone of a name; raises PlanError, which calls it ``what``, for anything else."""
    if not isinstance(name, str):
        raise PlanError(f"{what} must be a name such as 'America/New_York', not {shown(name)}")
    return zone(name)


def _unknown(name: str, names: list[str], version: str) -> str:
    from difflib import get_close_matches  # noqa: PLC0415 - only errors say it

    lower = {one.lower(): one for one in names}
    near = get_close_matches(name.lower().replace(" ", "_"), lower, ZONES_SUGGESTED, 0.5)
    others = [lower[one] for one in near] or ["America/New_York", "Europe/Paris", "UTC"]
    return (
        f"there is no time zone {shown(name)} in tzdata {version}: write one such as "
        f"{', '.join(others)}"
    )


def _offset_s(clocks: ZoneInfo, instant_s: int) -> int:
    offset = datetime.fromtimestamp(instant_s, clocks).utcoffset()
    assert offset is not None
    return round(offset.total_seconds())


def _changes(clocks: ZoneInfo, listed: list[int]) -> tuple[Ints, Ints]:
    """Return the instants at which the offset changes, FIRST_S before them, and the offsets."""
    last = listed[-1] if listed else FIRST_S
    instants = [FIRST_S, *listed, *range(last + _STEP_S, LAST_S, _STEP_S), LAST_S]
    begins, offsets = [FIRST_S], [_offset_s(clocks, FIRST_S)]
    for before, instant in pairwise(instants):
        offset = _offset_s(clocks, instant)
        if offset == offsets[-1]:
            continue
        # At most one change is in between, at a whole second.
        span = range(before + 1, instant + 1)
        at = bisect_right(span, 0, key=lambda second: _offset_s(clocks, second) == offset)
        begins.append(span[at])
        offsets.append(offset)
    return np.array(begins, np.int64), np.array(offsets, np.int64)


def _listed(packed: bytes) -> list[int]:
    """Return the instants of changes that a file lists (RFC 9636, its block of 64 bits).

    Later ones follow a rule, which ``ZoneInfo`` knows.
    """
    head = struct.Struct(">4s c 15x 6L")
    _, _, utc, standard, leaps, times, types, letters = head.unpack_from(packed)
    skipped = head.size + times * 5 + types * 6 + letters + leaps * 8 + standard + utc
    *_, times, _, _ = head.unpack_from(packed, skipped)
    listed = struct.unpack_from(f">{times}q", packed, skipped + head.size)
    return [one for one in listed if FIRST_S < one < LAST_S]

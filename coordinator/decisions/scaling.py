"""The number of workers that a cluster needs, for an autoscaler.

    reports -> demand on all -> needed now -> needed steadily -> wanted

Wanted is one of three: as many as there are, more, or one fewer. More are wanted after
``scale_up_after_ms`` of a higher need: the least need of that time, so that a peak adds no worker.
One fewer is wanted after ``scale_down_after_ms`` of a lower need, and again after as long. A worker
that comes or goes begins both times anew. One that goes unasked, by a crash or for new code, stays
wanted for ``scale_down_after_ms``: else an autoscaler takes away another.

Invariants: no more are wanted than have work, and at least one; there is no wish while the demand
of a worker is unknown. Fewer are wanted only while the cluster is at rest: all partitions live,
none moving, not frozen, and little to be replayed by the next owners.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from coordinator.decisions.limits import MS
from ripple.control.assignment import Phase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from coordinator.decisions.limits import Limits
    from coordinator.decisions.views import Demands, Sightings
    from ripple.control.assignment import Assignment, Demand
    from ripple.control.assignment.bounds import Who

CALM = 0.8
"""Fewer workers are needed only if they were no busier than this share of the target."""
SMOOTHING_S = 10.0
"""The time constant of the mean of busy shares: it forgets two thirds in this time."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How many workers are wanted, of at most ``most``, and why; now: how many there are."""

    wanted: int
    now: int
    most: int
    why: str


@dataclass(slots=True)
class _Spell:
    """Since when more, or fewer, have been needed without a break; nearest: to those there are."""

    since_ns: int
    nearest: int


class Scaling:
    """The demand on a cluster over time, as one replica knows it."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._members: frozenset[Who] = frozenset()
        self._busy = 0.0  # the sum over all workers, smoothed
        self._looked_ns: int | None = None
        self._more: _Spell | None = None
        self._fewer: _Spell | None = None
        self._count = self._wished = 0  # as last known: of members, and the newest wish
        self._missing: _Spell | None = None  # nearest: the wish before workers went
        self.scale: Scale | None = None
        """The newest wish; None while the demand of a worker is unknown."""

    def look(self, now: Assignment, demands: Mapping[Who, Demand], now_ns: int) -> None:
        """Take the demand of each member."""
        members = frozenset((one.id, one.incarnation) for one in now.members if not one.is_leaving)
        if not members or not members <= demands.keys():
            self._members, self.scale = frozenset(), None
            return
        known = [demands[who] for who in sorted(members)]
        busy = sum(one.busy for one in known)
        if members != self._members:
            self._members, self._busy, self._looked_ns = members, busy, now_ns
            self._more = self._fewer = None
            if len(members) >= self._wished:
                self._missing = None
            elif len(members) < self._count:
                self._missing = _Spell(now_ns, self._wished)
            self._count = len(members)
        assert self._looked_ns is not None
        passed_s, self._looked_ns = (now_ns - self._looked_ns) / (1000 * MS), now_ns
        self._busy = busy + (self._busy - busy) * math.exp(-max(passed_s, 0.0) / SMOOTHING_S)
        backlog_s = max(one.backlog_s for one in known)
        debt_s = max(one.debt_s for one in known)
        live = sum(one.live for one in known)
        unrest = _unrest(now, live, debt_s, self._limits)
        found = self._wish(len(members), most_of(now), backlog_s, unrest, now_ns)
        self.scale = self._with_missing(found, now_ns)
        self._wished = self.scale.wanted

    def _wish(self, count: int, most: int, backlog_s: float, unrest: str, now_ns: int) -> Scale:
        limits, share = self._limits, self._limits.scale_busy_percent / 100
        by_busy = _at_least_one(self._busy / share)
        is_behind = 1000 * backlog_s >= limits.scale_up_after_ms
        needed = min(max(by_busy, count + is_behind), most)
        spare = min(_at_least_one(self._busy / (share * CALM)), most)
        self._more = _spell(self._more, needed if needed > count else None, min, now_ns)
        is_spare = spare < count and not is_behind and not unrest
        self._fewer = _spell(self._fewer, spare if is_spare else None, max, now_ns)
        busy = f"{round(100 * self._busy / count)} % busy, {limits.scale_busy_percent} % are meant"
        if _has_lasted(self._more, limits.scale_up_after_ms, now_ns):
            assert self._more is not None
            why = busy if by_busy > count else f"behind the input for {round(backlog_s)} s"
            return Scale(self._more.nearest, count, most, why)
        if _has_lasted(self._fewer, limits.scale_down_after_ms, now_ns):
            return Scale(count - 1, count, most, busy)
        return Scale(count, count, most, unrest or busy)

    def _with_missing(self, found: Scale, now_ns: int) -> Scale:
        if self._missing is None or _has_lasted(
            self._missing, self._limits.scale_down_after_ms, now_ns
        ):
            return found
        wanted = min(self._missing.nearest, found.most)
        if wanted <= found.wanted:
            return found
        why = f"{wanted} were wanted before workers went unasked"
        return Scale(wanted, found.now, found.most, why)


def newest(views: Iterable[tuple[Sightings, Demands]]) -> dict[Who, Demand]:
    """Return the demand of each worker, from the view that has heard it last."""
    found: dict[Who, tuple[int, Demand]] = {}
    for sightings, demands in views:
        seen = dict(sightings)
        for who, demand in demands:
            if who in seen and (who not in found or seen[who].silent_ns < found[who][0]):
                found[who] = seen[who].silent_ns, demand
    return {who: demand for who, (_, demand) in found.items()}


def most_of(now: Assignment) -> int:
    """Return how many workers can have work: each process needs a partition of a stage."""
    processes = min((len(one.starts) for one in now.members), default=1)
    return -(-max(stage.partitions for stage in now.stages) // max(processes, 1))


def _unrest(now: Assignment, live: int, debt_s: float, limits: Limits) -> str:
    """Return why no worker should go now; "" if one may."""
    if now.frozen is not None:
        return f"the assignment is frozen: {now.frozen}"
    if live < len(now.shares):
        return f"{len(now.shares) - live} partitions are not live"
    if any(share.phase is not Phase.OWNED for share in now.shares):
        return "partitions move"
    if 1000 * debt_s >= limits.scale_debt_max_ms:
        return f"records of {round(debt_s)} s are in no checkpoint"
    return ""


def _at_least_one(workers: float) -> int:
    # A hair above a whole number is that number.
    return max(1, math.ceil(round(workers, 6)))


def _spell(
    before: _Spell | None, needed: int | None, nearest: Callable[[int, int], int], now_ns: int
) -> _Spell | None:
    if needed is None:
        return None
    if before is None:
        return _Spell(now_ns, needed)
    return _Spell(before.since_ns, nearest(before.nearest, needed))


def _has_lasted(spell: _Spell | None, after_ms: int, now_ns: int) -> bool:
    return spell is not None and now_ns - spell.since_ns >= after_ms * MS

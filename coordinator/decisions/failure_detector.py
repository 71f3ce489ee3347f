"""The failure detector of one replica: its own view, the views of others, and its trust in itself.

It is memory only: a replica that starts has none, and observes for as long as a silent worker takes
to die before it evicts any. So does a replica that was suspended or late, since messages to it may
wait unread.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from coordinator.decisions.limits import MS, Limits
from coordinator.decisions.views import (
    HealthState,
    Observation,
    View,
    WorkerHealth,
    is_mass_silence,
    merged,
)
from ripple.control.assignment.bounds import Who
from ripple.world.ports import Guards, all_guards

if TYPE_CHECKING:
    from collections.abc import Container, Iterable


@dataclass(slots=True)
class _Heard:
    """Observations of one worker."""

    at_ns: int
    was_heard: bool
    has_ended: bool = False


@dataclass(frozen=True, slots=True)
class _Other:
    """The newest view of another replica, and when it came; None: its age is unknown."""

    view: View
    at_ns: int | None


class FailureDetector:
    """The memory of the replica called ``replica``; all times are its own monotonic clock.

    Invariant: it remembers exactly the members that it was told of last.
    """

    def __init__(
        self, replica: str, limits: Limits, now_ns: int, *, guards: Guards = all_guards
    ) -> None:
        self.replica = replica
        self._limits = limits
        self._guards = guards
        self._observing_since_ns = now_ns
        self._late_ns = now_ns  # when it was last late, or started
        self._heard: dict[Who, _Heard] = {}
        self._others: dict[str, _Other] = {}
        self._looked_ns: int | None = None
        self._wrote_ns: int | None = None
        self._number = 0

    def members_are(self, members: Iterable[Who], now_ns: int) -> None:
        """Set the members; a new one has not been heard yet."""
        before = self._heard
        self._heard = {who: before.get(who) or _Heard(now_ns, was_heard=False) for who in members}

    def heard(self, who: Who, now_ns: int) -> None:
        """Note a message of a worker."""
        if who in self._heard:
            self._heard[who] = _Heard(now_ns, was_heard=True)

    def ended(self, who: Who, now_ns: int) -> None:
        """Note that a worker's stream has ended.

        It is dead a while later, but no later than by its silence alone: a frozen worker's stream
        ends only when a peer notices.
        """
        known = self._heard.get(who)
        if known is not None and not known.has_ended:
            spared_ns = (self._limits.dead_after_ms - self._limits.ended_after_ms) * MS
            at_ns = min(now_ns, known.at_ns + spared_ns)
            self._heard[who] = _Heard(at_ns, was_heard=True, has_ended=True)

    def late(self, now_ns: int) -> None:
        """Note that this replica was late: its observation starts anew."""
        self._late_ns = now_ns
        if self._guards("observe_anew"):
            self._observing_since_ns = now_ns

    def other(self, view: View, now_ns: int) -> None:
        """Take another replica's view from a message; an old one is ignored."""
        self._take(view, now_ns)

    def found(self, view: View, now_ns: int) -> None:
        """Take another replica's view from the store.

        The first one found while this replica cannot judge yet may be of a replica that died before
        it started: a live replica keeps publishing views.
        """
        is_first = view.replica not in self._others and not self.has_observed(now_ns)
        self._take(view, None if is_first else now_ns)

    def _take(self, view: View, at_ns: int | None) -> None:
        known = self._others.get(view.replica)
        if view.replica == self.replica or (known and view.number <= known.view.number):
            return
        self._others[view.replica] = _Other(view, at_ns)
        if len(self._others) > self._limits.views_max:
            oldest = min(self._others, key=lambda name: (self._others[name].at_ns or 0, name))
            del self._others[oldest]

    @property
    def has_others(self) -> bool:
        """Whether a live peer was heard since the start."""
        return any(other.at_ns is not None for other in self._others.values())

    def has_observed(self, now_ns: int) -> bool:
        """Return whether it has observed for as long as a silent worker takes to die."""
        return now_ns - self._observing_since_ns >= self._limits.dead_after_ms * MS

    def looked(self, now_ns: int) -> None:
        """Note that all views in the store were read."""
        self._looked_ns = now_ns

    def wrote(self, now_ns: int) -> None:
        """Note that the store has accepted a write."""
        self._wrote_ns = now_ns

    def view(self, now_ns: int) -> View:
        """Return its own view, with the next number."""
        self._number += 1
        return View(self.replica, self._number, tuple(sorted(self.sightings(now_ns).items())))

    def fresh(self, now_ns: int) -> list[View]:
        """Return the views of others that have advanced lately."""
        if not self._guards("merge_views"):
            return []
        return [
            other.view
            for _, other in sorted(self._others.items())
            if self._is_recent(other.at_ns, now_ns)
        ]

    def verdicts(self, now_ns: int) -> dict[Who, WorkerHealth]:
        """Return the health of each member, from all fresh views."""
        others = (dict(view.sightings) for view in self.fresh(now_ns))
        return merged(self.sightings(now_ns), others, self._limits)

    def evictable(
        self, verdicts: dict[Who, WorkerHealth], now_ns: int, returned: Container[str] = ()
    ) -> list[Who]:
        """Return the members to be evicted. returned: workers of which a new run asks to join."""
        dead = [who for who, verdict in verdicts.items() if verdict.standing is HealthState.DEAD]
        if not dead or not self._may_judge(now_ns):
            return []
        if self._guards("mass_silence") and is_mass_silence(verdicts, self._limits, returned):
            dead = [
                who for who in dead if who[0] in returned or self._outlasts(verdicts[who], now_ns)
            ]
        return dead

    def _outlasts(self, verdict: WorkerHealth, now_ns: int) -> bool:
        """Return whether a silence is longer than any trouble of this replica may last."""
        long_ns = self._limits.mass_silence_ms * MS
        is_sound = now_ns - self._late_ns >= long_ns and self._is_recent(self._wrote_ns, now_ns)
        return is_sound and verdict.silent_ns >= long_ns

    def _may_judge(self, now_ns: int) -> bool:
        """Return whether it has observed for long enough, and knows the views of others."""
        if self._guards("observe_first") and not self.has_observed(now_ns):
            return False
        return not self._guards("look_first") or self._is_recent(self._looked_ns, now_ns)

    def sightings(self, now_ns: int) -> dict[Who, Observation]:
        """Return its own observations of the members."""
        return {
            who: Observation(now_ns - heard.at_ns, heard.was_heard, heard.has_ended)
            for who, heard in self._heard.items()
        }

    def _is_recent(self, at_ns: int | None, now_ns: int) -> bool:
        return at_ns is not None and now_ns - at_ns <= self._limits.view_fresh_ms * MS

"""Views of replicas, merged into the health of each worker.

    ACTIVE -> SUSPECTED -> DEAD -> REMOVED

A worker is as silent as the view that heard it last. One that any view hears is alive: a worker
that is cut off from one replica only continues. Silence in another replica's view is evidence only
if the view is fresh, and has heard the worker, or observed for as long as a silent worker takes to
die.

Invariants: a pure function of its arguments, in any order of views; hearing more makes no worker
more dead; REMOVED is what the chain says, and final.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Annotated, TypeAlias

from coordinator.decisions.limits import MS
from ripple.control.assignment import AssignmentError, Demand
from ripple.control.assignment.bounds import AtMost, Checked, Growing, Name, Who

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from coordinator.decisions.limits import Limits

MEMBERS_MAX = 16_384  # of one view


class HealthState(Enum):
    """Health of a worker, as a coordinator sees it."""

    ACTIVE = "active"
    SUSPECTED = "suspected"
    DEAD = "dead"
    REMOVED = "removed"


# DEAD is a verdict, which a version of the assignment carries out. A worker that is heard before
# that version is there, is alive; a removed one stays so.
TRANSITIONS: dict[HealthState, frozenset[HealthState]] = {
    HealthState.ACTIVE: frozenset({HealthState.SUSPECTED, HealthState.DEAD, HealthState.REMOVED}),
    HealthState.SUSPECTED: frozenset({HealthState.ACTIVE, HealthState.DEAD, HealthState.REMOVED}),
    HealthState.DEAD: frozenset({HealthState.ACTIVE, HealthState.SUSPECTED, HealthState.REMOVED}),
    HealthState.REMOVED: frozenset(),
}


@dataclass(frozen=True, slots=True)
class Observation:
    """One view's observation of one worker.

    silent_ns: since it was heard, or since the view began to observe. was_heard: which of both.
    has_ended: its stream to this replica has ended, and no other has come.
    """

    silent_ns: Growing
    was_heard: bool
    has_ended: bool = False


Sightings: TypeAlias = Annotated[tuple[tuple[Who, Observation], ...], AtMost(MEMBERS_MAX)]
Demands: TypeAlias = Annotated[tuple[tuple[Who, Demand], ...], AtMost(MEMBERS_MAX)]


def _check_replica(name: str) -> None:
    if not name:
        raise AssignmentError("a view has no replica id")


@dataclass(frozen=True, slots=True)
class View:
    """The observations of a replica; ``number`` counts them. replica: a nonce of its process.

    demands: of the workers that report to it.
    """

    replica: Annotated[Name, Checked(_check_replica)]
    number: int
    sightings: Sightings
    demands: Demands = ()


@dataclass(frozen=True, slots=True)
class WorkerHealth:
    """Health of one worker over all views. silent_ns: in the view that heard it last.

    is_heard: some view has heard it lately; one that was not observed for long enough may be ACTIVE
    without. has_ended: all its streams have ended; silent_ns is about since then.
    """

    standing: HealthState
    silent_ns: int
    is_heard: bool
    has_ended: bool = False

    @property
    def why(self) -> str:
        """The cause of its state, in words."""
        seconds = self.silent_ns // (1000 * MS)
        if self.has_ended:
            return f"its connections have ended, and it has not come back for {seconds} s"
        return f"silent for {seconds} s"


def merged(
    own: Mapping[Who, Observation], others: Iterable[Mapping[Who, Observation]], limits: Limits
) -> dict[Who, WorkerHealth]:
    """Return the health of each worker in the own view. others: fresh views of other replicas."""
    others = list(others)
    return {
        who: _verdict(sighting, [view[who] for view in others if who in view], limits)
        for who, sighting in sorted(own.items())
    }


def _verdict(own: Observation, others: list[Observation], limits: Limits) -> WorkerHealth:
    dead_ns, suspected_ns = limits.dead_after_ms * MS, limits.suspected_after_ms * MS
    silent_ns, is_heard, has_ended, is_dead = own.silent_ns, False, True, True
    for one in (own, *others):
        if one is not own and not one.was_heard and one.silent_ns < dead_ns:
            continue  # it is no evidence
        silent_ns = min(silent_ns, one.silent_ns)
        is_heard |= one.was_heard and not one.has_ended and one.silent_ns < suspected_ns
        has_ended &= one.has_ended
        is_dead &= _is_silent(one, limits)
    standing = HealthState.ACTIVE
    if is_dead:
        standing = HealthState.DEAD
    elif silent_ns >= suspected_ns or has_ended:
        standing = HealthState.SUSPECTED
    return WorkerHealth(standing, silent_ns, is_heard, has_ended)


def _is_silent(sighting: Observation, limits: Limits) -> bool:
    after_ms = limits.ended_after_ms if sighting.has_ended else limits.dead_after_ms
    return sighting.silent_ns >= after_ms * MS


def is_mass_silence(
    verdicts: Mapping[Who, WorkerHealth], limits: Limits, returned: Container[str] = ()
) -> bool:
    """Return whether so many are silent together that the observers are the suspects.

    Every silent worker counts, dead or not: silence that begins at once does not end at once.
    returned: workers of which a new run asks to join. They are heard well, so the silence of their
    former run says nothing about the observers.
    """
    silent = sum(not one.is_heard and who[0] not in returned for who, one in verdicts.items())
    return silent >= limits.mass_silence_members and 3 * silent > len(verdicts)

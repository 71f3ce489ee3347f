"""Merged views: any fresh view that hears a worker keeps it alive."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.decisions.failure_detector import FailureDetector
from coordinator.decisions.limits import MS, Limits
from coordinator.decisions.views import (
    TRANSITIONS,
    HealthState,
    Observation,
    View,
    WorkerHealth,
    is_mass_silence,
    merged,
)
from ripple.control.assignment.bounds import Who

LIMITS = Limits()
W: Who = ("w1", 3)
ACTIVE, SUSPECTED, DEAD, REMOVED = HealthState

LEGAL = {
    (ACTIVE, SUSPECTED),
    (ACTIVE, DEAD),
    (ACTIVE, REMOVED),
    (SUSPECTED, ACTIVE),
    (SUSPECTED, DEAD),
    (SUSPECTED, REMOVED),
    (DEAD, ACTIVE),
    (DEAD, SUSPECTED),
    (DEAD, REMOVED),
}


@pytest.mark.parametrize(("before", "after"), list(product(HealthState, HealthState)))
def test_standing_changes_as_the_table_has_it(before: HealthState, after: HealthState) -> None:
    assert (after in TRANSITIONS[before]) == ((before, after) in LEGAL)


def heard(seconds: float) -> Observation:
    return Observation(round(seconds * 1e9), was_heard=True)


def unheard(seconds: float) -> Observation:
    return Observation(round(seconds * 1e9), was_heard=False)


def ended(seconds: float) -> Observation:
    return Observation(round(seconds * 1e9), was_heard=True, has_ended=True)


@pytest.mark.parametrize(
    ("own", "others", "standing"),
    [
        (heard(0), [], ACTIVE),
        (heard(3.9), [], ACTIVE),
        (heard(4), [], SUSPECTED),
        (heard(7.9), [], SUSPECTED),
        (heard(8), [], DEAD),
        (heard(8), [heard(8)], DEAD),
        (heard(60), [heard(7.9)], SUSPECTED),
        (heard(60), [heard(1)], ACTIVE),
        (heard(1), [heard(60)], ACTIVE),
        (heard(60), [heard(60), heard(2)], ACTIVE),
        (ended(0), [], SUSPECTED),
        (ended(2.9), [], SUSPECTED),
        (ended(3), [], DEAD),
        (ended(3), [ended(2)], SUSPECTED),
        (ended(3), [ended(3)], DEAD),
        (ended(30), [heard(2)], ACTIVE),
        (ended(3), [heard(7)], ACTIVE),
        # Who has begun to look only now knows nothing.
        (unheard(7.9), [], SUSPECTED),
        (unheard(8), [], DEAD),
        (heard(8), [unheard(2)], DEAD),
        (unheard(2), [heard(60)], ACTIVE),
        (heard(8), [unheard(9)], DEAD),
    ],
)
def test_verdict_is_that_of_the_view_that_heard_it_last(
    own: Observation, others: list[Observation], standing: HealthState
) -> None:
    verdict = merged({W: own}, [{W: other} for other in others], LIMITS)[W]
    assert verdict.standing is standing


sightings = st.builds(
    Observation,
    st.integers(0, 20).map(lambda seconds: seconds * 10**9),
    was_heard=st.booleans(),
    has_ended=st.booleans(),
)
ORDER = [ACTIVE, SUSPECTED, DEAD]


@given(sightings, st.lists(sightings), st.randoms(use_true_random=False))
def test_order_of_views_changes_nothing(
    own: Observation, others: list[Observation], random: object
) -> None:
    views = [{W: other} for other in others]
    assert merged({W: own}, views, LIMITS) == merged({W: own}, views[::-1], LIMITS)


@given(sightings, st.lists(sightings), sightings)
def test_another_view_that_heard_a_worker_makes_it_no_more_dead(
    own: Observation, others: list[Observation], more: Observation
) -> None:
    views = [{W: other} for other in others]
    before = merged({W: own}, views, LIMITS)[W].standing
    after = merged({W: own}, [*views, {W: more}], LIMITS)[W].standing
    assert after is not DEAD or before is DEAD


@given(sightings, st.lists(sightings))
def test_worker_heard_by_any_view_is_not_dead(own: Observation, others: list[Observation]) -> None:
    verdict = merged({W: own}, [{W: other} for other in others], LIMITS)[W]
    for one in [own, *others]:
        if one.was_heard and one.silent_ns < LIMITS.ended_after_ms * MS:
            assert verdict.standing is not DEAD


@pytest.mark.parametrize(
    ("silent", "of", "is_mass"),
    [(1, 1, False), (1, 2, False), (2, 2, True), (2, 5, True), (2, 6, False), (3, 8, True)],
)
def test_mass_silence_is_two_and_more_than_a_third(silent: int, of: int, is_mass: bool) -> None:
    verdicts = {
        (f"w{number}", 1): WorkerHealth(
            SUSPECTED if number < silent else ACTIVE, 0, number >= silent
        )
        for number in range(of)
    }
    assert is_mass_silence(verdicts, LIMITS) is is_mass


# One replica's memory.


def at(seconds: float) -> int:
    return round(seconds * 1e9)


def detector(*members: Who) -> FailureDetector:
    one = FailureDetector("c1", LIMITS, 0)
    one.members_are(members or [W], 0)
    return one


def evictable(one: FailureDetector, seconds: float) -> list[Who]:
    one.looked(at(seconds))
    return one.evictable(one.verdicts(at(seconds)), at(seconds))


def test_silent_worker_is_doomed_after_a_full_period() -> None:
    one = detector()
    one.heard(W, at(5))
    assert evictable(one, 12.9) == []
    assert evictable(one, 13) == [W]


def test_stream_of_a_frozen_worker_that_ends_late_does_not_spare_it() -> None:
    one = detector()
    one.heard(W, at(10))
    one.ended(W, at(17))
    assert evictable(one, 17.9) == []
    assert evictable(one, 18) == [W]


def test_a_replica_that_just_started_observes_a_full_period_first() -> None:
    one = detector()
    one.heard(W, at(1))
    one.ended(W, at(2))
    assert evictable(one, 7.9) == []
    assert evictable(one, 8) == [W]


def test_a_replica_that_was_late_observes_anew() -> None:
    one = detector()
    one.heard(W, at(1))
    one.late(at(20))
    assert evictable(one, 20) == []
    assert evictable(one, 28) == [W]


def test_no_eviction_before_other_views_were_read() -> None:
    one = detector()
    assert one.evictable(one.verdicts(at(20)), at(20)) == []
    one.looked(at(13))
    assert one.evictable(one.verdicts(at(20)), at(20)) == []
    assert evictable(one, 20) == [W]


def test_a_view_that_does_not_advance_is_not_fresh() -> None:
    one = detector()
    view = View("c2", 7, ((W, heard(0)),))
    one.other(view, at(10))
    assert evictable(one, 16) == []
    one.other(view, at(16))  # read again, the same
    assert evictable(one, 16.1) == [W]
    one.other(View("c2", 8, ((W, heard(0)),)), at(17))
    assert evictable(one, 17) == []
    one.other(View("c2", 6, ((W, heard(99)),)), at(18))  # an old one comes late
    assert evictable(one, 18) == []


def test_a_view_in_the_store_from_before_this_one_began_is_of_nobody() -> None:
    one = detector()
    one.found(View("c2", 7, ((W, heard(0)),)), at(4))
    assert one.fresh(at(4)) == []
    one.found(View("c2", 8, ((W, heard(0)),)), at(6))  # it lives
    assert [view.number for view in one.fresh(at(6))] == [8]
    assert evictable(one, 12) == []


def test_a_view_in_the_store_of_one_that_was_not_needed_before_is_believed() -> None:
    one = detector()
    one.found(View("c2", 7, ((W, heard(0)),)), at(9))
    assert evictable(one, 9) == []


def test_own_view_that_comes_back_is_not_another() -> None:
    one = detector()
    one.other(View("c1", 99, ((W, heard(0)),)), at(20))
    assert evictable(one, 20) == [W]


MANY: list[Who] = [("w1", 1), ("w2", 1), ("w3", 1), ("w4", 1)]


def mass(one: FailureDetector, seconds: float, *, wrote: bool = True) -> list[Who]:
    for who in MANY[2:]:
        one.heard(who, at(seconds))
    if wrote:
        one.wrote(at(seconds))
    return evictable(one, seconds)


def test_mass_silence_waits_for_thirty_seconds() -> None:
    one = detector(*MANY)
    assert mass(one, 8) == []
    assert mass(one, 29.9) == []
    assert mass(one, 30) == MANY[:2]


def test_mass_silence_that_begins_one_after_the_other_waits_too() -> None:
    one = detector(*MANY)
    one.heard(MANY[0], at(0.9))
    assert mass(one, 8) == []  # the second is dead, the first is only suspected
    assert mass(one, 8.9) == []


def test_workers_observed_too_shortly_count_as_silent() -> None:
    """A replica that reads late who has joined does not take them for well."""
    one = detector(*MANY)
    one.members_are(MANY, at(20))
    one.members_are([*MANY, ("w5", 4)], at(20))
    one.heard(MANY[1], at(20.5))
    verdicts = one.verdicts(at(21))
    assert verdicts["w5", 4] == WorkerHealth(ACTIVE, at(1), is_heard=False)
    assert mass(one, 21) == []
    one.heard(("w5", 4), at(22))
    one.heard(MANY[1], at(22))
    assert mass(one, 22) == MANY[:1]


def test_mass_silence_needs_a_store_that_takes_writes_and_a_loop_that_is_in_time() -> None:
    one = detector(*MANY)
    assert mass(one, 30, wrote=False) == []
    one.late(at(31))
    assert mass(one, 60) == []
    assert mass(one, 61) == MANY[:2]


def test_a_worker_that_asks_to_join_anew_is_no_part_of_a_mass_silence() -> None:
    """It was switched off with all others and is back, so that the network is there."""
    one = detector(*MANY)
    one.looked(at(9))
    verdicts = one.verdicts(at(9))
    assert one.evictable(verdicts, at(9), {"w1", "w2", "w3", "w4"}) == MANY
    assert one.evictable(verdicts, at(9), {"w1", "w2", "w3"}) == MANY  # one alone is no mass
    assert one.evictable(verdicts, at(9), {"w1"}) == MANY[:1]
    assert one.evictable(verdicts, at(9)) == []
    assert one.evictable(one.verdicts(at(7)), at(7), {"w1", "w2", "w3", "w4"}) == []


def test_mass_silence_in_one_view_is_none_if_the_other_hears() -> None:
    one = detector(*MANY)
    one.other(View("c2", 1, tuple((who, heard(0.5)) for who in MANY)), at(60))
    assert mass(one, 60) == []


def test_memory_keeps_members_only() -> None:
    one = detector()
    one.heard(("w9", 1), at(1))
    one.members_are([("w2", 5)], at(2))
    assert [who for who, _ in one.view(at(3)).sightings] == [("w2", 5)]
    for number in range(50):
        one.other(View(f"boot {number}", 1, ()), at(number / 100))
    assert len(one.fresh(at(1))) == LIMITS.views_max

"""Clusters to which anything may happen keep their promises, and come to rest."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coordinator.decisions import events as ev
from coordinator.decisions import instructions as ins
from coordinator.decisions.limits import Limits
from coordinator.decisions.progress import Progress
from coordinator.decisions.state import Coordinator
from ripple.control.assignment import Follower, Phase, Report, Share
from ripple.control.rpc import membership_messages as msg
from ripple.testing import explore
from ripple.testing.sim.chance import Chance
from ripple.testing.sim.faults import Drawn, Faults
from ripple.testing.sim.run import run
from ripple.world.ports import Guards, all_guards
from tests.coordinator import scenarios
from tests.coordinator.cluster import A, B, Cluster, explain, play, two, without
from tests.examples import EXAMPLES, THINNED

MOVES = 25
SEEDS = 12 * EXAMPLES // THINNED
SEEDS_MAX = 1000
REMEMBERED = (3678, 5350)  # these have found something

Moves = list[tuple[int, int, int]]


def moves_of(seed: int) -> Moves:
    chance = Chance(seed, "moves")
    return [(chance.below(1000), chance.below(1000), chance.below(1000)) for _ in range(MOVES)]


def outcome(moves: Moves, guards: Guards = all_guards, processes: int = 1) -> str | None:
    """Return what went wrong, with what has happened; None if nothing did."""
    cluster = Cluster(guards=guards, processes=processes)
    try:
        play(cluster, moves)
    except AssertionError as error:
        return f"{error}\n" + "\n".join(explain(cluster))
    return None


@pytest.mark.parametrize("seed", [*REMEMBERED, *range(SEEDS)])
def test_cluster_keeps_its_promises_and_comes_to_rest(seed: int) -> None:
    assert outcome(moves_of(seed), processes=1 + seed % 2) is None


NUMBERS = st.integers(0, 999)


@settings(max_examples=6 * EXAMPLES // THINNED, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), max_size=15))
def test_cluster_keeps_its_promises_whatever_happens(moves: Moves) -> None:
    assert outcome(moves) is None


def test_a_history_is_a_function_of_what_has_happened() -> None:
    one, other = Cluster(), Cluster()
    play(one, moves_of(5))
    play(other, moves_of(5))
    assert one.chain == other.chain


# Where the search begins: the seed that found it out when this was written.
SAFEGUARDS = {
    "merge_views": 0,
    "mass_silence": 0,
    "observe_first": 3,
    "observe_anew": 3,
    "version_interval": 2,
    "move_limits": 12,
    "give_anew": 0,
}


@pytest.mark.parametrize("safeguard", SAFEGUARDS)
def test_missing_safeguard_is_found_out(safeguard: str) -> None:
    for seed in (SAFEGUARDS[safeguard], *range(SEEDS_MAX)):
        if outcome(moves_of(seed), without(safeguard), processes=1 + seed % 2) is not None:
            return
    raise AssertionError(f"nobody misses {safeguard}")


def test_two_coordinators_over_a_failing_store_never_split_the_chain() -> None:
    report = explore(scenarios.two_coordinators, seeds=range(12 * EXAMPLES // THINNED))
    assert report.landed.total() > 10, report


@pytest.mark.parametrize("safeguard", ["fence", "put_if_absent"])
def test_missing_safeguard_of_the_chain_is_found_out(safeguard: str) -> None:
    for seed in range(SEEDS_MAX):
        faults = Drawn(seed, Faults())
        check = scenarios.check
        if run(scenarios.two_coordinators, seed, faults, check=check, without=(safeguard,)).error:
            return
    raise AssertionError(f"nobody misses {safeguard}")


# What chance seldom meets, told as a story each.


def store_that_answers_no_reads(guards: Guards) -> None:
    """Proposals reach the store, but what other replicas wrote there is never read."""
    one = Coordinator("c1", 0, Limits(partitions=2), guards=guards)
    one.step(ev.ChainRead(two(Share(A, 4)), 7), 0)
    for second in range(1, 40):
        one.step(msg.Heartbeat(("a", 4), Report(0.5, (0,))), second * 10**9)
        for told in one.step(ev.Ticked(), second * 10**9):
            if isinstance(told, ins.Propose):
                assert told.assignment.has("b", 5), "b is evicted"
                one.step(ev.ProposalEnded(), second * 10**9)


def follower_that_was_near_once(guards: Guards) -> None:
    """A follower catches up for a moment, and falls behind again."""
    now = two(Share(A, 4, next=B))
    progress = Progress(Limits(), guards=guards)
    for behind in (9, 1, 5, 0, 3, 1):
        beat = msg.Heartbeat(("b", 5), Report(followers=(Follower(0, B, behind),)))
        progress.reported(beat, now, 0)
        assert now.shares[0].phase is Phase.WARMING
        assert progress.warm == frozenset(), "it is not near twice in a row"
    progress.reported(msg.Heartbeat(("b", 5), Report(followers=(Follower(0, B, 1),))), now, 0)
    assert progress.warm == {(0, B)}


STORIES: dict[str, Callable[[Guards], None]] = {
    "look_first": store_that_answers_no_reads,
    "caught_up_twice": follower_that_was_near_once,
}


@pytest.mark.parametrize("safeguard", STORIES)
def test_story_is_well_with_its_safeguard_and_not_without(safeguard: str) -> None:
    STORIES[safeguard](all_guards)
    with pytest.raises(AssertionError):
        STORIES[safeguard](without(safeguard))

"""How many workers are wanted: under steady, noisy, doubling and halving loads."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise

import pytest

from coordinator.decisions.limits import Limits
from coordinator.decisions.scaling import Scale, Scaling, most_of, newest
from coordinator.decisions.views import Observation
from ripple.control.assignment import Assignment, Demand, Share, Stage
from ripple.control.assignment.bounds import Who
from tests.control.assignment.examples import member

SECOND = 1_000_000_000
PARTITIONS = 16


@cache
def cluster(workers: int, *, processes: int = 1, frozen: str | None = None) -> Assignment:
    """Return a cluster at rest."""
    members = tuple(
        member(f"w{number:02}", 1, processes=processes) for number in range(1, workers + 1)
    )
    owners = [f"{one.id}/0" for one in members]
    shares = tuple(Share(owners[number % workers], 1) for number in range(PARTITIONS))
    return Assignment(
        version=1,
        cause="",
        stages=(Stage("main", PARTITIONS),),
        shares=shares,
        members=members,
        frozen=frozen,
    )


def demands(
    now: Assignment, busy: float, backlog_s: float = 0.0, debt_s: float = 0.0
) -> dict[Who, Demand]:
    """Return the same demand of each member."""
    live = [sum(s.owner == f"{one.id}/0" for s in now.shares) for one in now.members]
    return {
        (one.id, one.incarnation): Demand(busy, backlog_s, debt_s, count)
        for one, count in zip(now.members, live, strict=True)
    }


class Watched:
    """A Scaling that is told of each second."""

    def __init__(self, **limits: int) -> None:
        self.scaling, self.second = Scaling(Limits(**limits)), 0

    def see(self, now: Assignment, known: dict[Who, Demand], seconds: int = 1) -> Scale | None:
        for _ in range(seconds):
            self.second += 1
            self.scaling.look(now, known, self.second * SECOND)
        return self.scaling.scale


def test_more_are_wanted_once_more_were_needed_for_long_enough() -> None:
    watched, now = Watched(), cluster(3)
    assert watched.see(now, demands(now, 0.9), 29).wanted == 3  # type: ignore[union-attr]  # known
    assert watched.see(now, demands(now, 0.9), 5) == Scale(5, 3, 16, "90 % busy, 60 % are meant")


def test_a_peak_adds_no_worker() -> None:
    watched, now = Watched(), cluster(3)
    for _ in range(20):
        watched.see(now, demands(now, 1.0), 15)
        found = watched.see(now, demands(now, 0.1), 30)
        assert found is not None
        assert found.wanted == 3


def test_one_fewer_is_wanted_after_ten_minutes_of_rest() -> None:
    watched, now = Watched(), cluster(3)
    assert watched.see(now, demands(now, 0.1), 590).wanted == 3  # type: ignore[union-attr]  # known
    assert watched.see(now, demands(now, 0.1), 20).wanted == 2  # type: ignore[union-attr]  # known
    now = cluster(2)
    assert watched.see(now, demands(now, 0.1), 590).wanted == 2  # type: ignore[union-attr]  # known


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"frozen": "a look"}, "the assignment is frozen: a look"),
        ({"moving": True}, "partitions move"),
        ({"unowned": True}, "1 partitions are not live"),
        ({"debt_s": 400.0}, "records of 400 s are in no checkpoint"),
        ({"backlog_s": 20.0}, "10 % busy, 60 % are meant"),
    ],
)
def test_none_goes_while_the_cluster_is_not_at_rest(change: dict[str, object], why: str) -> None:
    watched, now = Watched(), cluster(3, frozen=change.get("frozen"))  # type: ignore[arg-type]  # a text
    known = demands(now, 0.1, debt_s=change.get("debt_s", 0.0))  # type: ignore[arg-type]  # a number
    first, *others = now.shares
    if "moving" in change:
        first = replace(first, next="w02/0")
    now = replace(now, shares=(first, *others))
    if "unowned" in change:
        known[("w01", 1)] = replace(known[("w01", 1)], live=known[("w01", 1)].live - 1)
    found = watched.see(now, known, 700)
    assert found is not None
    assert (found.wanted, found.why) == ((2 if "backlog_s" in change else 3), why)


def test_one_more_is_wanted_behind_the_input_even_if_none_is_busy() -> None:
    watched, now = Watched(), cluster(3)
    found = watched.see(now, demands(now, 0.2, backlog_s=45.0), 31)
    assert found == Scale(4, 3, 16, "behind the input for 45 s")


def test_a_worker_that_went_unasked_stays_wanted() -> None:
    """Else an autoscaler would take away one for each that crashes, or starts with new code."""
    watched, three, two = Watched(), cluster(3), cluster(2)
    watched.see(three, demands(three, 0.5), 60)
    unknown = demands(two, 0.5)
    del unknown["w02", 1]
    assert watched.see(two, unknown) is None
    missing = Scale(3, 2, 16, "3 were wanted before workers went unasked")
    assert watched.see(two, demands(two, 0.5), 590) == missing
    assert watched.see(two, demands(two, 0.5), 20).wanted == 2  # type: ignore[union-attr]  # known
    watched.see(three, demands(three, 0.5), 60)
    assert watched.see(two, demands(two, 0.5), 60) == missing
    one = cluster(1)
    watched.see(one, demands(one, 0.5), 60)
    assert watched.see(two, demands(two, 0.5)) == missing
    assert watched.see(three, demands(three, 0.5)) == Scale(3, 3, 16, "50 % busy, 60 % are meant")


def test_no_more_are_wanted_than_have_work() -> None:
    watched, now = Watched(), cluster(16)
    assert watched.see(now, demands(now, 1.0, backlog_s=99.0), 100) == Scale(
        16, 16, 16, "100 % busy, 60 % are meant"
    )
    assert most_of(cluster(3, processes=5)) == 4
    now = cluster(16)
    many = replace(now, stages=(Stage("main", 8), Stage("more", 8)))
    found = watched.see(many, demands(many, 1.0), 700)
    assert found is not None
    assert (found.wanted, found.most) == (15, 8)


def test_there_is_no_wish_while_a_worker_is_unknown() -> None:
    watched, now = Watched(), cluster(3)
    known = demands(now, 0.9)
    watched.see(now, known, 60)
    del known["w02", 1]
    assert watched.see(now, known) is None


def test_the_view_that_has_heard_a_worker_last_counts() -> None:
    who, other = ("w1", 1), ("w2", 2)
    old = (((who, Observation(5, was_heard=True)),), ((who, Demand(0.1)), (other, Demand(0.7))))
    new = (((who, Observation(3, was_heard=True)),), ((who, Demand(0.9)),))
    assert newest([old, new]) == newest([new, old]) == {who: Demand(0.9)}


@dataclass
class World:
    """Workers with so much to do, in workers."""

    count: int
    backlog: float = 0.0  # in seconds of one worker's work
    behind_s: float = 0.0

    def turn(self, load: float, noise: float) -> Demand:
        """Return the demand after a second."""
        capacity = self.count * 0.95
        self.backlog = max(0.0, self.backlog + load - capacity)
        self.behind_s = self.behind_s + 1 if self.backlog else 0.0
        busy = (capacity if self.backlog else load) / self.count + noise
        return Demand(min(1.0, max(0.0, busy)), self.behind_s, 5.0)


def counts_under(loads: list[float], seed: int, **limits: int) -> tuple[list[int], float]:
    """Return the number of workers after each quarter of a minute, and the longest backlog.

    An autoscaler looks as often, and grants each wish. Each load holds for an hour, with
    minutes of a fifth more or less, and seconds with noise.
    """
    chance, watched, world = random.Random(seed), Watched(**limits), World(3)
    counts, backlog = [], 0.0
    for second in range(3600 * len(loads)):
        if second % 60 == 0:
            load = loads[second // 3600] * chance.uniform(0.8, 1.2)
        one, now = world.turn(load, chance.uniform(-0.15, 0.15)), cluster(world.count)
        known = {who: replace(one, live=each.live) for who, each in demands(now, 0.0).items()}
        found = watched.see(now, known)
        assert found is not None
        backlog = max(backlog, world.backlog)
        if second % 15 == 0:
            world.count = found.wanted
            counts.append(world.count)
    return counts, backlog


def changes_of_direction(counts: list[int]) -> int:
    """Return how often a number that grew shrinks next, or the other way round."""
    steps = [b - a for a, b in pairwise(counts) if a != b]
    return sum(a * b < 0 for a, b in pairwise(steps))


def test_loads_that_double_and_halve_do_not_let_workers_come_and_go() -> None:
    counts, backlog = counts_under([1.5, 3.0, 6.0, 3.0, 1.5], seed=1)
    assert changes_of_direction(counts) <= 2
    assert backlog < 300
    by_hour = [counts[240 * hour - 1] for hour in range(1, 6)]
    assert by_hour[2] >= 6 / 0.6
    assert by_hour[4] <= by_hour[2] // 2


def test_without_patience_workers_come_and_go() -> None:
    counts, _ = counts_under([3.0], seed=1, scale_up_after_ms=1, scale_down_after_ms=1)
    assert changes_of_direction(counts) > 10

"""Random schedules of coordinators and members; missing safeguards are found."""

from __future__ import annotations

import pytest

from ripple.testing import explore, repeat
from ripple.testing.sim.faults import Drawn, Faults, Planned
from ripple.testing.sim.run import run
from tests.worker.scenarios import members_come_and_go, one_more_joins

SEEDS_MAX = 1000
# Where the search begins: the seed that found it out when this was written.
SAFEGUARDS = {"merge_views": 10}


def test_cluster_of_members_comes_to_rest_whatever_happens() -> None:
    report = explore(members_come_and_go, seeds=range(6))
    assert report.landed.total() > 20, report


def test_cluster_comes_to_rest_whichever_effect_of_a_joining_is_somebodys_last() -> None:
    effects = len(run(one_more_joins, 0, Planned(())).effects[0])
    assert effects > 300
    kinds = ("kill_before", "kill_after", "power_torn")
    for number, effect in enumerate(range(0, effects, 61)):
        done = repeat(one_more_joins, seed=0, plan=f"0.{effect}:{kinds[number % 3]}:{number}")
        assert done.error is None, (effect, done.error)


@pytest.mark.parametrize("safeguard", SAFEGUARDS)
def test_missing_safeguard_is_found_out(safeguard: str) -> None:
    for seed in (SAFEGUARDS[safeguard], *range(SEEDS_MAX)):
        faults = Drawn(seed, Faults(kinds=()))
        if run(members_come_and_go, seed, faults, without=(safeguard,)).error is not None:
            return
    raise AssertionError(f"nobody misses {safeguard}")

"""Pauses between attempts: how they grow, and how they are spread."""

from __future__ import annotations

from itertools import islice

from ripple.testing.sim.chance import Chance
from ripple.world.pauses import BRIEF_DELAYS_S, DELAYS_S, Pauses, doubling, jittered


def test_pauses_double_up_to_the_longest() -> None:
    assert list(islice(doubling(0.5, 3.0), 5)) == [0.5, 1.0, 2.0, 3.0, 3.0]


def test_a_jittered_pause_is_between_half_and_all_of_it() -> None:
    random = Chance(1)
    found = [jittered(2.0, random) for _ in range(1000)]
    assert 1.0 <= min(found) < 1.1
    assert 1.9 < max(found) <= 2.0


def test_delays_outlast_a_restart_of_a_server() -> None:
    assert 30 < sum(DELAYS_S) < 31
    assert DELAYS_S[: len(BRIEF_DELAYS_S)] == BRIEF_DELAYS_S


def test_pauses_begin_anew_after_an_attempt_that_has_worked_for_a_while() -> None:
    now_ns = 0
    pauses = Pauses(lambda: now_ns, 1.0, 8.0, steady_s=5.0)
    found = []
    for lasts_s in (0, 5, 6, 0):
        pauses.begin()
        pauses.works()
        now_ns += lasts_s * 10**9
        found.append(pauses.next_s())
    assert found == [1.0, 2.0, 1.0, 2.0]

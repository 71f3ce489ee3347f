"""Crashes at every effect: each cut is there once, in order, as if nothing had happened."""

from __future__ import annotations

import pytest

from ripple.testing import SimulationError, enumerate_crashes, explore, repeat
from ripple.testing.sim.faults import FAULTS_OF
from tests.connectors.sinks.kit import KINDS, Kind, committed, pipeline
from tests.examples import EXAMPLES, SAMPLED, SPARSE, THINNED


@pytest.mark.parametrize("kind", KINDS)
def test_each_cut_is_there_once_whatever_crashes(kind: str) -> None:
    chosen = KINDS[kind]
    report = enumerate_crashes(
        pipeline(chosen), check=committed(chosen), pairs=8 * EXAMPLES // SAMPLED, every=THINNED
    )
    assert report.lives > report.runs > 50


@pytest.mark.parametrize("kind", KINDS)
def test_each_cut_is_there_once_under_random_faults(kind: str) -> None:
    chosen = KINDS[kind]
    seeds = range((100 if chosen.is_fast else 30) * EXAMPLES // SAMPLED)
    explore(pipeline(chosen), seeds=seeds, check=committed(chosen))


@pytest.mark.parametrize("kind", KINDS)
def test_names_and_contents_become_durable_in_any_order(kind: str) -> None:
    cut_power_often(KINDS[kind], every=SPARSE)


def cut_power_often(kind: Kind, *, every: int = 1, without: tuple[str, ...] = ()) -> None:
    """Cut the power after each effect, several times: each leaves something else of the rest.

    every: which of six ways, by turns.
    """
    program, check = pipeline(kind), committed(kind)
    (effects,) = repeat(program, seed=0, without=without).effects
    for number, name in enumerate(effects, 1):
        for salt in range(2 + number % every, 8, every) if "power_after" in FAULTS_OF[name] else ():
            plan = f"0.{number}:power_after:{salt}"
            done = repeat(program, seed=0, plan=plan, check=check, without=without)
            if done.error is not None:
                raise SimulationError(plan, done)


MISSING = [
    ("csv", "data_sync"),
    ("csv", "name_sync"),
    ("csv", "truncation"),
    ("csv", "record_sync"),
    ("csv", "record_name_sync"),
    ("csv", "fsync_file"),
    ("csv", "fsync_folder"),
    ("log", "data_sync"),
    ("log", "cut_in_frame"),
    ("log", "record_sync"),
    ("log", "record_name_sync"),
    ("log in parts", "skipped_rows"),
    ("log in parts", "fsync_folder"),
]


@pytest.mark.usefixtures("unshrunk")
@pytest.mark.parametrize(("kind", "safeguard"), MISSING)
def test_missing_safeguard_is_found_out(kind: str, safeguard: str) -> None:
    chosen = KINDS[kind]
    with pytest.raises(SimulationError):
        tried(chosen, without=(safeguard,))


def tried(kind: Kind, *, without: tuple[str, ...]) -> None:
    program, check = pipeline(kind), committed(kind)
    enumerate_crashes(program, check=check, without=without)
    cut_power_often(kind, without=without)
    explore(program, seeds=range(300), check=check, without=without)

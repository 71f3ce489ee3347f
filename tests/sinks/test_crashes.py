"""Crashes at every effect: each cut is there once, in order, as if nothing had happened."""

from __future__ import annotations

import pytest

from ripple.testing import SimulationError, enumerate_crashes, explore
from tests.sinks.kit import KINDS, Kind, committed, pipeline


@pytest.mark.parametrize("kind", KINDS)
def test_each_cut_is_there_once_whatever_crashes(kind: str) -> None:
    chosen = KINDS[kind]
    report = enumerate_crashes(pipeline(chosen), check=committed(chosen), pairs=40)
    assert report.lives > report.runs > 50


@pytest.mark.parametrize("kind", KINDS)
def test_each_cut_is_there_once_under_random_faults(kind: str) -> None:
    chosen = KINDS[kind]
    explore(pipeline(chosen), seeds=range(300), check=committed(chosen))


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


@pytest.mark.parametrize(("kind", "safeguard"), MISSING)
def test_missing_safeguard_is_found_out(kind: str, safeguard: str) -> None:
    chosen = KINDS[kind]
    with pytest.raises(SimulationError):
        tried(chosen, without=(safeguard,))


def tried(kind: Kind, *, without: tuple[str, ...]) -> None:
    program, check = pipeline(kind), committed(kind)
    enumerate_crashes(program, check=check, without=without)
    explore(program, seeds=range(300), check=check, without=without)

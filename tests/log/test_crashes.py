"""Crashes at every effect, and random faults: nothing promised is lost, nothing half is seen."""

from __future__ import annotations

from typing import Any

import pytest

from ripple.testing import Scenario, SimulationError, enumerate_crashes, explore
from tests.log import scenarios

SCENARIOS = [
    scenarios.synced_each_time,
    scenarios.synced_in_groups,
    scenarios.synced_by_the_producer,
]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_log_survives_a_crash_at_every_effect(scenario: Scenario) -> None:
    report = enumerate_crashes(scenario, check=scenarios.survived, pairs=40)
    assert report.lives > report.runs > 50


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_log_survives_random_faults(scenario: Scenario) -> None:
    explore(scenario, seeds=range(150), check=scenarios.survived)


@pytest.mark.parametrize(
    "safeguard", ["fsync_file", "fsync_folder", "folder_sync", "torn_tail_cut", "idempotent_append"]
)
def test_missing_safeguard_is_found_out(safeguard: str) -> None:
    search: Any = enumerate_crashes
    with pytest.raises(SimulationError):
        search(scenarios.synced_each_time, check=scenarios.survived, without=(safeguard,), pairs=40)

"""Crashes at every effect, and random faults: nothing promised is lost, nothing half is seen."""

from __future__ import annotations

from typing import Any

import pytest

from ripple.storage.log import writer
from ripple.testing import Scenario, SimulationError, enumerate_crashes, explore, repeat
from tests.examples import EXAMPLES, SAMPLED, THINNED
from tests.storage.log import scenarios

SCENARIOS = [
    scenarios.synced_each_time,
    scenarios.synced_in_groups,
    scenarios.synced_by_the_producer,
]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_log_survives_a_crash_at_every_effect(scenario: Scenario) -> None:
    report = enumerate_crashes(
        scenario, check=scenarios.survived, pairs=10 * EXAMPLES // SAMPLED, every=THINNED
    )
    assert report.lives > report.runs > 50


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_log_survives_random_faults(scenario: Scenario) -> None:
    explore(scenario, seeds=range(60 * EXAMPLES // SAMPLED), check=scenarios.survived)


def test_log_whose_index_is_written_at_each_sync_survives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "APPENDS_PER_INDEX", 1)
    scenario = scenarios.synced_in_groups
    enumerate_crashes(
        scenario, check=scenarios.survived, pairs=10 * EXAMPLES // SAMPLED, every=THINNED
    )
    explore(scenario, seeds=range(60 * EXAMPLES // SAMPLED), check=scenarios.survived)


@pytest.mark.usefixtures("unshrunk")
@pytest.mark.parametrize(
    "safeguard", ["fsync_file", "fsync_folder", "folder_sync", "torn_tail_cut", "idempotent_append"]
)
def test_missing_safeguard_is_found_out(safeguard: str) -> None:
    search: Any = enumerate_crashes
    with pytest.raises(SimulationError):
        search(scenarios.synced_each_time, check=scenarios.survived, without=(safeguard,), pairs=40)


@pytest.mark.parametrize("without", [(), ("rewritten_tail",)])
def test_successful_sync_after_a_failed_one_is_distrusted(without: tuple[str, ...]) -> None:
    """Killed with an append unsynced; a sync fails as the next writer opens; then a power cut."""
    run = repeat(
        scenarios.synced_each_time,
        seed=6056,
        plan="0.17:kill_after:477 1.5:sync_failed:697 2.22:power_before:806",
        check=scenarios.survived,
        without=without,
    )
    assert [fault.kind for fault in run.faults[:2]] == ["kill_after", "sync_failed"]
    assert (run.error is None) == (without == ())

"""The cluster's health in a sentence."""

from __future__ import annotations

from dataclasses import replace

from coordinator.dashboard.words import verdict
from tests.coordinator.messages import STATUS


def test_workers_that_have_left_are_not_taken_for_workers_to_come() -> None:
    alone = replace(STATUS, members=())
    assert verdict(alone, [], {})["text"] == "All workers have left: nothing is computed."
    new = replace(alone, version=0)
    assert verdict(new, [], {})["text"] == "No worker has joined yet: nothing is computed."

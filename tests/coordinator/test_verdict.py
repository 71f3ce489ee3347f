"""The cluster's health in a sentence."""

from __future__ import annotations

from dataclasses import replace

from coordinator.dashboard.words import verdict
from coordinator.decisions.status import AlertStatus
from ripple.control.assignment import Alert
from tests.coordinator.messages import STATUS


def test_workers_that_have_left_are_not_taken_for_workers_to_come() -> None:
    alone = replace(STATUS, members=())
    assert verdict(alone, [], {})["text"] == "All workers have left: nothing is computed."
    new = replace(alone, version=0)
    assert verdict(new, [], {})["text"] == "No worker has joined yet: nothing is computed."


def test_an_alert_that_fires_is_no_good_health() -> None:
    slow = Alert("StabilizationSlow", "warning", "77 ms (p99)", 720.0)
    one = replace(STATUS.members[0], backpressure=None)
    calm = replace(STATUS, unowned=0, members=(one,), moves=(), waiting=(), problems=(), alerts=())
    assert verdict(calm, [], {})["level"] == "good"
    found = verdict(replace(calm, alerts=(AlertStatus("w1", slow),)), [], {})
    assert found == {
        "level": "warn",
        "text": "Everything is computed, but StabilizationSlow fires.",
        "cause": "77 ms (p99)",
    }

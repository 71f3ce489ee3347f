"""Each alert fires where it should, after its time, and is over when all is well."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from ripple.control.telemetry.alerts import (
    EXPIRY_S,
    LOSS_S,
    RULES,
    STEP_S,
    WINDOW_S,
    Alerts,
    AlertThresholds,
    Seen,
    State,
)
from ripple.control.telemetry.samples import Samples

NS = 1_000_000_000
FILE = Path(__file__).parents[3] / "deploy/prometheus/rules.yml"


class Worker:
    """What a worker has measured, as it goes on."""

    def __init__(self, thresholds: AlertThresholds | None = None) -> None:
        self.alerts = Alerts(thresholds)
        self.seen = Seen(Samples())
        self.at_s = 100.0

    @property
    def samples(self) -> Samples:
        return self.seen.samples

    def pass_time(self, seconds: float, happens: Callable[[], None] = lambda: None) -> None:
        for _ in range(round(seconds)):
            self.at_s += 1
            happens()
            self.alerts.look(self.seen, round(self.at_s * NS))

    @property
    def firing(self) -> list[str]:
        return [one.name for one in self.alerts.firing]

    @property
    def cause(self) -> str:
        (alert,) = self.alerts.firing
        return alert.cause

    # What may happen within a second.

    def steps(self, milliseconds: float) -> None:
        self.samples.observe("ripple_graph_stabilization_ns", milliseconds * 1e6, "w0")

    def events(self, applied: int, very_late: int) -> None:
        self.samples.add("ripple_events_total", applied, "w0", "applied")
        self.samples.add("ripple_events_total", very_late, "w0", "very_late")
        self.samples.add("ripple_window_very_late_events_total", very_late, "w0")


@pytest.fixture
def worker() -> Worker:
    return Worker()


def test_slow_steps_fire_and_quick_ones_end_it(worker: Worker) -> None:
    worker.pass_time(60, lambda: worker.steps(9))
    assert worker.alerts.standings["StabilizationSlow"].state is State.QUIET
    worker.pass_time(300, lambda: worker.steps(40))
    assert worker.alerts.standings["StabilizationSlow"].state is State.WAITING
    worker.pass_time(10, lambda: worker.steps(40))
    assert worker.firing == ["StabilizationSlow"]
    assert worker.cause.startswith("stabilization takes 4")
    worker.pass_time(WINDOW_S + 10, lambda: worker.steps(2))
    assert worker.firing == []


def test_larger_batches_of_a_partition_that_catches_up_may_take_longer(worker: Worker) -> None:
    def step(milliseconds: float) -> None:
        worker.steps(milliseconds)
        worker.events(8000, 0)

    worker.pass_time(700, lambda: step(40))
    assert worker.alerts.standings["StabilizationSlow"].state is State.QUIET
    worker.pass_time(700, lambda: step(99))
    assert worker.firing == ["StabilizationSlow"]
    assert worker.cause.endswith("ms (p99) for batches of 8000 records")


def test_one_slow_step_among_a_thousand_is_no_alert(worker: Worker) -> None:
    def step() -> None:
        for _ in range(999):
            worker.steps(0.2)
        worker.steps(90)

    worker.pass_time(700, step)
    assert worker.alerts.standings["StabilizationSlow"].state is State.QUIET


def test_a_full_queue_fires_after_a_minute_by_its_name(worker: Worker) -> None:
    worker.samples.set("ripple_worker_queue_fill", 0.3, "divided", "0")
    worker.samples.set("ripple_worker_queue_fill", 0.9, "outboxes", "1")
    worker.pass_time(60)
    assert worker.firing == []
    worker.pass_time(1)
    assert (worker.firing, worker.cause) == (["BackpressureHigh"], "outboxes is 90% full")
    worker.samples.set("ripple_worker_queue_fill", 0.8, "outboxes", "1")
    worker.pass_time(1)
    assert worker.firing == []


def test_interrupted_condition_waits_anew(worker: Worker) -> None:
    for fill in (0.9, 0.1, 0.9):
        worker.samples.set("ripple_worker_queue_fill", fill, "outboxes", "0")
        worker.pass_time(45)
        assert worker.firing == []


def test_many_late_events_fire_and_are_over_after_a_window(worker: Worker) -> None:
    worker.pass_time(10, lambda: worker.events(99, 1))
    worker.pass_time(310, lambda: worker.events(97, 3))
    assert worker.firing == ["LateEventsExcessive"]
    assert worker.cause == "3.00% of events are very late"
    worker.pass_time(WINDOW_S + 10, lambda: worker.events(99, 1))
    assert worker.firing == []


def test_an_old_checkpoint_fires_only_while_something_is_to_be_replayed(worker: Worker) -> None:
    for partition, debt in (("1", 0), ("2", 5), ("3", 7)):
        worker.samples.set("ripple_partition_checkpoint_age_seconds", 301, "w0", partition)
        worker.samples.set("ripple_partition_replay_debt_events", debt, "w0", partition)
    worker.samples.set("ripple_partition_checkpoint_age_seconds", 999, "w0", "1")
    worker.pass_time(311)
    assert worker.firing == ["CheckpointStale"]
    assert worker.cause == "partition 3 has had no checkpoint for 301 s, and 1 others"
    for partition in "23":
        worker.samples.set("ripple_partition_replay_debt_events", 0, "w0", partition)
    worker.pass_time(1)
    assert worker.firing == []


def test_events_after_a_long_pause_have_time_for_a_checkpoint(worker: Worker) -> None:
    labels = "w0", "1"
    worker.samples.set("ripple_partition_checkpoint_age_seconds", 900, *labels)
    worker.samples.set("ripple_partition_replay_debt_events", 0, *labels)
    worker.pass_time(60)
    worker.samples.set("ripple_partition_replay_debt_events", 5, *labels)
    worker.pass_time(310)
    assert worker.firing == []
    worker.pass_time(1)
    assert worker.firing == ["CheckpointStale"]
    worker.samples.set("ripple_partition_checkpoint_age_seconds", 1, *labels)
    worker.pass_time(1)
    assert worker.firing == []


def test_silence_of_all_coordinators_fires_at_once_and_an_answer_ends_it(worker: Worker) -> None:
    worker.seen = replace(worker.seen, silent_s=30.0)
    worker.pass_time(1)
    assert worker.firing == []
    worker.seen = replace(worker.seen, silent_s=31.0)
    worker.pass_time(1)
    assert (worker.firing, worker.cause) == (
        ["WorkerSilent"],
        "no coordinator has answered for 31 s",
    )
    worker.seen = replace(worker.seen, silent_s=0.5)
    worker.pass_time(1)
    assert worker.firing == []


def test_a_refused_worker_says_why(worker: Worker) -> None:
    worker.seen = replace(worker.seen, refused="its schema differs")
    worker.pass_time(1)
    assert (worker.firing, worker.cause) == (["SchemaMismatch"], "its schema differs")
    worker.seen = replace(worker.seen, refused="")
    worker.pass_time(1)
    assert worker.firing == []


def test_rows_missing_in_a_result_fire_with_their_fold(worker: Worker) -> None:
    worker.samples.set("ripple_fold_uncomputable_rows", 0, "w0", "f")
    worker.samples.set("ripple_partition_keys", 2000, "w0", "1")
    worker.samples.add("ripple_window_future_events_total", 7, "w0")
    worker.pass_time(1)
    assert worker.firing == []
    worker.samples.set("ripple_fold_uncomputable_rows", 2, "w0", "f")
    worker.samples.set("ripple_partition_keys", 2001, "w0", "1")
    worker.samples.add("ripple_window_future_events_total", 1, "w0")
    worker.pass_time(1)
    assert {one.name: one.cause for one in worker.alerts.firing} == {
        "ResultsNotComputed": "result rows that cannot be computed, and are absent: 2 of 'f'",
        "EventsFromFuture": "1 events far ahead of their watermark",
        "KeysOverBudget": ("partition 1 holds 2001 keys, more than max_keys_per_partition (2000)"),
    }
    worker.samples.set("ripple_fold_uncomputable_rows", 0, "w0", "f")
    worker.samples.set("ripple_partition_keys", 1, "w0", "1")
    worker.pass_time(WINDOW_S + STEP_S)
    assert worker.firing == []
    free = Worker(AlertThresholds(max_keys_per_partition=0))
    free.samples.set("ripple_partition_keys", 9000, "w0", "1")
    free.pass_time(1)
    assert free.firing == []


def test_a_loss_is_told_for_a_quarter_of_an_hour(worker: Worker) -> None:
    worker.samples.add("ripple_digest_mismatches_total", 0, "w0")
    worker.pass_time(5)
    assert worker.firing == []
    worker.samples.add("ripple_digest_mismatches_total", 1, "w0")
    worker.pass_time(LOSS_S)
    assert worker.firing == ["DataLossDetected"]
    assert worker.alerts.firing[0].seconds == LOSS_S - 1
    worker.pass_time(1)
    assert worker.firing == []


def test_begin_and_end_of_an_alert_are_returned_once() -> None:
    alerts, full = Alerts(), Seen(Samples())
    full.samples.set("ripple_worker_queue_fill", 1.0, "divided", "0")
    changed = [alerts.look(full if at < 100 else Seen(Samples()), at * NS) for at in range(200)]
    assert [(at, one.state.value) for at, ones in enumerate(changed) for one in ones] == [
        (60, "firing"),
        (100, "quiet"),
    ]


def test_thresholds_are_those_that_are_set() -> None:
    worker = Worker(AlertThresholds(alert_late_share=0.5, alert_silent_ms=1_000_000))
    worker.seen = replace(worker.seen, silent_s=999.0)
    worker.pass_time(700, lambda: worker.events(60, 40))
    assert worker.firing == []


def test_prometheus_is_given_the_same_rules() -> None:
    """Names, severities, thresholds, windows and waiting times are those of the shipped file."""
    shipped = {
        rule["alert"]: rule
        for group in yaml.safe_load(FILE.read_text())["groups"]
        for rule in group["rules"]
    }
    assert RULES.keys() < shipped.keys()
    limits = AlertThresholds()
    thresholds = {
        "StabilizationSlow": limits.alert_stabilization_ms * 1e6,
        "BackpressureHigh": limits.alert_backpressure,
        "LateEventsExcessive": limits.alert_late_share,
        "CheckpointStale": limits.alert_checkpoint_ms / 1000,
        "WorkerSilent": limits.alert_silent_ms / 1000,
        "SchemaMismatch": 0,
        "ProcessesDying": 2,
        "DataLossDetected": 0,
        "CertificateExpires": EXPIRY_S,
        "ResultsNotComputed": 0,
        "EventsFromFuture": 0,
        "KeysOverBudget": 0,  # of a budget that there is
    }
    for name, rule in RULES.items():
        told = shipped[name]
        assert told["labels"]["severity"] == rule.severity
        assert _seconds(told.get("for", "0s")) == rule.after_s, name
        said = re.findall(r"[<>] ([0-9.e]+)", told["expr"])
        assert float(said[0]) == thresholds[name], name
    (told,) = re.findall(r"offset (\w+)", shipped["CheckpointStale"]["expr"])
    assert _seconds(told) == limits.alert_checkpoint_ms / 1000
    windows = re.findall(r"rate\([^)]*\[(\w+)\]", shipped["StabilizationSlow"]["expr"])
    assert {_seconds(one) for one in windows} == {WINDOW_S}
    (told,) = re.findall(r"\[(\w+)\]", shipped["DataLossDetected"]["expr"])
    assert _seconds(told) == LOSS_S


def _seconds(text: str) -> float:
    return int(text[:-1]) * {"s": 1, "m": 60}[text[-1]]

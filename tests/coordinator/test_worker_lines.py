"""Warnings and errors of workers, from their logs into the dashboard."""

from __future__ import annotations

from coordinator.dashboard.slowed import Slowed
from coordinator.service.worker_lines import KEPT, WorkerLines
from ripple.control.assignment import LINES_MAX, Backpressure, Level, Report
from ripple.control.process_settings import LogSettings
from ripple.control.telemetry import levels
from ripple.control.telemetry.log import Log
from ripple.control.telemetry.recent_lines import RECENT_MS, TEXT_LENGTH_MAX
from worker.messages import together

SECOND = 10**9


class Worker:
    """The log of one, by a clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.log = Log(
            LogSettings(form="json", level="info"), lambda _: None, lambda: self.now_ns,
            environment={"API_TOKEN": "s3cret-s3cret"}, worker="w", process="w/0",
        )  # fmt: skip

    @property
    def said(self) -> Report:
        return together({}, (0,), lines=self.log.recent())


def test_lines_of_several_heartbeats_are_there_once() -> None:
    worker, kept = Worker(), WorkerLines()
    for second in range(30):
        worker.now_ns = second * SECOND
        if second % 10 == 3:
            worker.log.say("goes on")
            worker.log.say(f"has failed with s3cret-s3cret at {second}", levels.Level.ERROR)
        kept.take("w", worker.said.lines)
    found = kept.of("w")
    assert [one.text for one in found] == [f"has failed with *** at {n}" for n in (23, 13, 3)]
    assert {(one.level, one.process) for one in found} == {("error", "w/0")}
    assert kept.of("v") == []


def test_lines_of_one_millisecond_are_newest_first() -> None:
    worker, kept = Worker(), WorkerLines()
    for number in range(3):
        worker.log.say(f"line {number}", levels.Level.WARN)
    kept.take("w", worker.said.lines)
    assert [one.text for one in kept.of("w")] == ["line 2", "line 1", "line 0"]


def test_lines_are_bounded() -> None:
    worker, kept = Worker(), WorkerLines()
    for number in range(3 * KEPT):
        worker.now_ns += RECENT_MS * 1000
        worker.log.say(f"{number} {'x' * 10_000}", levels.Level.WARN)
        assert len(worker.said.lines) <= LINES_MAX
        kept.take("w", worker.said.lines)
    assert len(kept.of("w")) == KEPT
    assert {len(one.text) for one in kept.of("w")} == {TEXT_LENGTH_MAX}


def test_the_share_of_the_last_minute_in_which_a_worker_took_in_less() -> None:
    slowed = Slowed()
    assert slowed.share("w", None, 0) is None
    for second in range(60):
        level = Level.PAUSE if second < 15 else Level.WARN
        found = slowed.share("w", Backpressure(level, 0.9, "outboxes"), second * SECOND)
    assert found == 0.25
    assert slowed.share("w", None, 200 * SECOND) is None

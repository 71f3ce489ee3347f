"""A worker's own alerts: coordinators that answer or refuse, and measurements."""

from __future__ import annotations

import json

from ripple.control.telemetry.alerts import RULES
from ripple.control.telemetry.samples import Samples
from ripple.core import events
from worker.pages import probes_of
from worker.supervisor.supervisor import Supervisor
from worker.supervisor.watch import Watch

NS = 1_000_000_000


class Clock:
    """One that is set by hand."""

    def __init__(self) -> None:
        self.at_s = 0.0

    def now_ns(self) -> int:
        return round(self.at_s * NS)

    monotonic_ns = now_ns

    async def sleep(self, seconds: float) -> None:
        self.at_s += seconds


def names(watch: Watch) -> list[str]:
    watch.look(Samples())
    return [alert.name for alert in watch.firing]


def test_a_worker_that_nobody_answers_says_so_until_somebody_does() -> None:
    clock = Clock()
    watch = Watch(clock)
    clock.at_s = 31
    assert names(watch) == ["WorkerSilent"]
    watch.on_event(events.CoordinatorAnswered("c", 1))
    assert names(watch) == []


def test_a_refusal_for_its_code_is_an_alert_until_it_has_joined() -> None:
    watch = Watch(Clock())
    watch.on_event(events.JoinRefused("c", "another worker called w1 waits to join"))
    assert names(watch) == []
    watch.on_event(events.JoinRefused("c", "w1 does not fit this cluster: its plan hash is x"))
    assert names(watch) == ["SchemaMismatch"]
    watch.on_event(events.Joined("w1", 3))
    assert names(watch) == []


def test_a_workers_page_and_report_have_its_alerts() -> None:
    clock = Clock()
    worker = Supervisor("w1", 0, None, clock, hung_after_s=1, say=print)  # type: ignore[arg-type]
    clock.at_s = 40
    worker.watch.look(Samples())
    clock.at_s = 42
    listed = {one["name"]: one for one in json.loads(probes_of(worker)["/alerts"]().body)}
    assert listed.keys() == RULES.keys()
    assert (listed["WorkerSilent"]["state"], listed["WorkerSilent"]["seconds"]) == ("firing", 2)
    assert listed["DataLossDetected"]["state"] == "quiet"
    assert [alert.name for alert in worker.report().alerts] == ["WorkerSilent"]

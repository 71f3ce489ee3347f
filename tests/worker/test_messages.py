"""Messages between a supervisor and its engine processes round trip."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from ripple.control.assignment import (
    Backpressure,
    Demand,
    Follower,
    Level,
    MoveFailed,
    Report,
    Stage,
)
from ripple.control.assignment.version import empty
from ripple.control.rpc import engine_pb2 as pb
from ripple.control.rpc.mapping import RpcError
from ripple.control.telemetry.samples import Samples
from ripple.core.settings import Arguments
from worker.backpressure import Queue
from worker.health import TaskHealth
from worker.messages import (
    FROM_ENGINE,
    TO_ENGINE,
    Assign,
    Begin,
    Cannot,
    EngineReport,
    Inspect,
    Stop,
    Store,
)
from worker.settings import load

GIVEN = {
    "pipeline": "p.py",
    "coordinator": "127.0.0.1:9200",
    "store": "a\udcff",  # a folder whose name is no text
    "source": "log:d/t",
    "sink": "log:d/o",
    "warn_threshold": "0.5",
}
ASSIGNMENT = replace(empty([Stage("main", 2)]), version=1, cause="it begins")
REPORT = Report(
    0.5,
    live=frozenset({(1, 3)}),
    followers=(Follower(2, "w/1", 9),),
    failed=(MoveFailed(3, "w/1", "its digest differs"),),
    inputs=(("trades", 8),),
    backpressure=Backpressure(Level.WARN, 0.7, "outboxes"),
    demand=Demand(0.5, 4.5, 2.5, 1),
)
HEALTH = TaskHealth(True, 3, "why", 7, 100, 20, 2, True, 4.5, 2.5)


def samples() -> Samples:
    found = Samples()
    found.set("ripple_system_heap_words", 5.0, "w0")
    found.observe("ripple_transport_rpc_latency_ns", 7.0, "w0")
    return found


TOLD = [
    Begin("w/1", "127.0.0.1:9601", "plan", "topology", load(Arguments(GIVEN), {}, {})),
    Assign(ASSIGNMENT, None),
    Assign(ASSIGNMENT, (1, 0)),
    Store(),
    Inspect(),
    Stop(),
]
SAID = [
    Cannot("no such file: \u00e9"),
    EngineReport(Report()),
    EngineReport(
        REPORT,
        ((0, TaskHealth()), (1, HEALTH)),
        (Queue("outboxes", 7, 10),),
        samples(),
        [[1, {"nodes": []}]],
    ),
]


@pytest.mark.parametrize("told", TOLD)
def test_what_an_engine_process_is_told_arrives(told: Any) -> None:
    assert TO_ENGINE.from_bytes(TO_ENGINE.to_bytes(told)) == told


@pytest.mark.parametrize("said", SAID)
def test_what_an_engine_process_says_arrives(said: Any) -> None:
    assert FROM_ENGINE.from_bytes(FROM_ENGINE.to_bytes(said)) == said


def test_every_message_and_every_field_of_health_has_an_example() -> None:
    told = {pb.ToEngine.FromString(TO_ENGINE.to_bytes(one)).WhichOneof("told") for one in TOLD}
    assert told == {each.name for each in pb.ToEngine.DESCRIPTOR.fields}
    for each in fields(TaskHealth):
        assert getattr(HEALTH, each.name) != getattr(TaskHealth(), each.name)


def test_an_assignment_that_breaks_its_rules_is_refused() -> None:
    broken = pb.ToEngine(assign=pb.Assign(assignment=b"{}"))
    with pytest.raises(RpcError, match=r"ripple\.rpc\.Assign is invalid: .*form None"):
        TO_ENGINE.from_bytes(broken.SerializeToString())


def test_bytes_of_a_name_that_are_no_text_are_escaped() -> None:
    said = FROM_ENGINE.from_bytes(FROM_ENGINE.to_bytes(Cannot("a\udcff")))
    assert said == Cannot("a\\udcff")

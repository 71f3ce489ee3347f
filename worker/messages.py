"""Messages between a supervisor and its engine processes, as protobuf."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from ripple.control.assignment import (
    LINES_MAX,
    Alert,
    Assignment,
    Backpressure,
    Demand,
    Line,
    Report,
)
from ripple.control.assignment.bounds import Encoded
from ripple.control.assignment.form import AssignmentContent
from ripple.control.rpc import engine_pb2 as pb
from ripple.control.rpc.mapping import Choice
from ripple.control.telemetry.samples import Samples
from ripple.core.setting import Found, InForce, made
from worker.backpressure import Queue
from worker.health import TaskHealth
from worker.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from worker.backpressure import Intake

_CONTENT = AssignmentContent()


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


def _settings_to(settings: Settings) -> bytes:
    return _json({name: [one.value, one.origin] for name, one in settings.origins.items()})


def _settings_from(data: bytes) -> Settings:
    found: Found = {name: InForce(*given) for name, given in json.loads(data).items()}
    return made(Settings, found)


# What has a form of its own elsewhere travels in that.
_Settings: TypeAlias = Annotated[Settings, Encoded(_settings_to, _settings_from)]
_Version: TypeAlias = Annotated[
    Assignment,
    Encoded(
        lambda one: _json(dict(_CONTENT.to_fields(one))),
        lambda data: _CONTENT.from_fields(json.loads(data)),
    ),
]
_Measures: TypeAlias = Annotated[
    Samples,
    Encoded(lambda one: _json(one.to_values()), lambda data: Samples.from_values(json.loads(data))),
]
_Graphs: TypeAlias = Annotated[list[Any], Encoded(_json, json.loads)]


@dataclass(frozen=True, slots=True)
class Begin:
    """The first message. process: its name, WORKER/SLOT. deltas: address to listen on.

    plan_hash, topology_hash: of the pipeline, as the supervisor has loaded it.
    """

    process: str
    deltas: str
    plan_hash: str
    topology_hash: str
    settings: _Settings


@dataclass(frozen=True, slots=True)
class Assign:
    """A version of the assignment. run: incarnation and start of the process, None if no member."""

    assignment: _Version
    run: tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Store:
    """Store checkpoints, soon."""


@dataclass(frozen=True, slots=True)
class Inspect:
    """Add the live graphs to the next report."""


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop gracefully."""


@dataclass(frozen=True, slots=True)
class Cannot:
    """A process cannot work at all."""

    why: str


@dataclass(frozen=True, slots=True)
class EngineReport:
    """The report of a process: its part of the worker's heartbeat, and of its pages.

    standings: health by partition. measures: None if this report has none. inspected: the live
    graphs by partition, if asked for.
    """

    report: Report
    standings: tuple[tuple[int, TaskHealth], ...] = ()
    queues: tuple[Queue, ...] = ()
    measures: _Measures | None = None
    inspected: _Graphs | None = None


ToEngine: TypeAlias = Begin | Assign | Store | Inspect | Stop
FromEngine: TypeAlias = Cannot | EngineReport

TO_ENGINE = Choice(
    pb.ToEngine,
    {"begin": Begin, "assign": Assign, "store": Store, "inspect": Inspect, "stop": Stop},
)
FROM_ENGINE = Choice(pb.FromEngine, {"cannot": Cannot, "report": EngineReport})


def report(
    said: Report, standings: Mapping[int, TaskHealth], intake: Intake | None = None
) -> EngineReport:
    """Return the report of a process."""
    return EngineReport(said, tuple(standings.items()), () if intake is None else intake.queues)


def together(
    reports: Mapping[int, Report],
    starts: tuple[int, ...],
    alerts: tuple[Alert, ...] = (),
    lines: tuple[Line, ...] = (),
) -> Report:
    """Merge the reports of all processes, by slot, into the worker's.

    alerts: firing ones. lines: of the supervisor's log.
    """
    inputs: dict[str, int] = {}
    for one in reports.values():
        for name, count in one.inputs:
            inputs[name] = max(count, inputs.get(name, 0))
    live = frozenset(pair for one in reports.values() for pair in one.live)
    return Report(
        load=max((one.load for one in reports.values()), default=0.0),
        starts=starts,
        live=live,
        followers=tuple(each for one in reports.values() for each in one.followers),
        failed=tuple(each for one in reports.values() for each in one.failed),
        inputs=tuple(sorted(inputs.items())),
        backpressure=max((one.backpressure for one in reports.values()), default=Backpressure()),
        alerts=alerts,
        demand=Demand(
            sum(one.demand.busy for one in reports.values()) / max(len(starts), 1),
            max((one.demand.backlog_s for one in reports.values()), default=0.0),
            max((one.demand.debt_s for one in reports.values()), default=0.0),
            len(live),
        ),
        lines=newest([*lines, *(line for one in reports.values() for line in one.lines)]),
    )


def newest(lines: Sequence[Line]) -> tuple[Line, ...]:
    """Return the newest lines, as many as a report may have, oldest first."""
    return tuple(sorted(lines, key=lambda one: (one.time_ms, one.process, one.number))[-LINES_MAX:])

"""Messages between a supervisor and its engine processes, as JSON."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

from ripple.control.assignment import (
    Alert,
    Assignment,
    Backpressure,
    Follower,
    Level,
    MoveFailed,
    Report,
)
from ripple.control.assignment.form import AssignmentContent
from ripple.control.telemetry.samples import Samples
from worker.backpressure import Queue
from worker.health import TaskHealth

if TYPE_CHECKING:
    from collections.abc import Mapping

    from worker.backpressure import Intake

REASON_LENGTH_MAX = 500
_CONTENT = AssignmentContent()
_STANDING = tuple(one.name for one in fields(TaskHealth))


def assign(assignment: Assignment, start: tuple[int, int] | None) -> dict[str, Any]:
    """Return the message for a version; start: the meant run of the process, None if no member."""
    return {
        "say": "assign",
        "assignment": dict(_CONTENT.to_fields(assignment)),
        "start": None if start is None else list(start),
    }


def assigned(message: Mapping[str, Any]) -> tuple[Assignment, tuple[int, int] | None]:
    """Parse ``assign``. Raises AssignmentError."""
    start = message["start"]
    return _CONTENT.from_fields(message["assignment"]), start and (int(start[0]), int(start[1]))


def report(
    said: Report, standings: Mapping[int, TaskHealth], intake: Intake | None = None
) -> dict[str, Any]:
    """Return the report of a process: its part of a heartbeat, and its counters."""
    queues, full = () if intake is None else intake.queues, said.backpressure
    return {
        "say": "report",
        "load": said.load,
        "live": sorted(said.live),
        "followers": [[one.partition, one.process, one.behind] for one in said.followers],
        "failed": [
            [one.partition, one.process, one.reason[:REASON_LENGTH_MAX]] for one in said.failed
        ],
        "inputs": said.inputs,
        "standings": {
            str(partition): {name: getattr(one, name) for name in _STANDING}
            for partition, one in standings.items()
        },
        "backpressure": [int(full.level), full.fill, full.queue],
        "queues": [[one.name, one.held, one.limit] for one in queues],
    }


def reported(message: Mapping[str, Any]) -> tuple[Report, dict[int, TaskHealth]]:
    """Parse ``report``, without starts."""
    level, fill, queue = message["backpressure"]
    said = Report(
        load=message["load"],
        live=frozenset((int(partition), int(since)) for partition, since in message["live"]),
        followers=tuple(Follower(*one) for one in message["followers"]),
        failed=tuple(MoveFailed(*one) for one in message["failed"]),
        inputs=tuple((name, count) for name, count in message["inputs"]),
        backpressure=Backpressure(Level(level), fill, queue),
    )
    standings = {int(key): TaskHealth(**one) for key, one in message["standings"].items()}
    return said, standings


def queues(message: Mapping[str, Any]) -> tuple[Queue, ...]:
    """Return the queues of a ``report``."""
    return tuple(Queue(*one) for one in message["queues"])


def measured(message: Mapping[str, Any]) -> Samples | None:
    """Return the measured samples, None if this report has none."""
    values = message.get("measures")
    return None if values is None else Samples.from_values(values)


def together(
    reports: Mapping[int, Report], starts: tuple[int, ...], alerts: tuple[Alert, ...] = ()
) -> Report:
    """Merge the reports of all processes, by slot, into the worker's. alerts: those that fire."""
    inputs: dict[str, int] = {}
    for one in reports.values():
        for name, count in one.inputs:
            inputs[name] = max(count, inputs.get(name, 0))
    return Report(
        load=max((one.load for one in reports.values()), default=0.0),
        starts=starts,
        live=frozenset(pair for one in reports.values() for pair in one.live),
        followers=tuple(each for one in reports.values() for each in one.followers),
        failed=tuple(each for one in reports.values() for each in one.failed),
        inputs=tuple(sorted(inputs.items())),
        backpressure=max((one.backpressure for one in reports.values()), default=Backpressure()),
        alerts=alerts,
    )

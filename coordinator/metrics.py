"""Metrics of a coordinator for Prometheus. Workers that are gone have none."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from coordinator.decisions.views import HealthState
from ripple.control.telemetry.alerts import RULES
from ripple.control.telemetry.samples import Samples

if TYPE_CHECKING:
    from coordinator.decisions.status import Status
    from coordinator.service.shell import Shell

STANDINGS = (HealthState.ACTIVE, HealthState.SUSPECTED, HealthState.DEAD)


def samples_of(shell: Shell) -> Samples:
    """Return the samples of one coordinator."""
    found, status = Samples(), shell.status
    _set(found, "ready", status is not None)
    _set(found, "conversations", len(shell.sessions))
    if status is not None:
        _of_cluster(found, status)
        now = shell.state.now
        live = frozenset() if now is None else shell.state.progress.live(now)
        _set(found, "partitions_live", len(live))
        _of_workers(found, status)
    return found


def _of_cluster(found: Samples, status: Status) -> None:
    _set(found, "assignment_version", status.version)
    _set(found, "frozen", status.frozen is not None)
    _set(found, "partitions", status.partitions)
    _set(found, "partitions_unowned", status.unowned)
    _set(found, "moves", len(status.moves))
    _set(found, "pins", len(status.pins))
    _set(found, "replicas_heard", len(status.replicas))
    _set(found, "candidates", len(status.waiting))
    _set(found, "problems", len(status.problems))
    if status.scale is not None:
        _set(found, "workers_wanted", status.scale.wanted)
    standings = Counter(member.standing for member in status.members)
    for name in RULES:
        count = sum(one.alert.name == name for one in status.alerts)
        _set(found, "alerts", count, name)
    for standing in STANDINGS:
        _set(found, "workers", standings[standing], standing.value)


def _of_workers(found: Samples, status: Status) -> None:
    for member in status.members:
        _set(found, "worker_partitions", member.partitions, member.id)
        _set(found, "worker_silent_seconds", member.silent_ms / 1000, member.id)
        if member.load is not None:
            _set(found, "worker_load", member.load, member.id)


def _set(found: Samples, name: str, value: float, *labels: str) -> None:
    found.set(f"ripple_coordinator_{name}", value, *labels)

"""HTTP pages of a worker: /health, /ready, /alerts, /graph and /metrics."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import TYPE_CHECKING

from ripple.control.probes import Page, json_page
from ripple.control.telemetry.alerts import RULES
from ripple.control.telemetry.exposition import CONTENT_TYPE, exposition
from ripple.control.telemetry.metrics import OF_WORKERS
from ripple.control.telemetry.samples import Samples
from ripple.model.pipeline.drawing import drawing
from worker.supervisor.state import State

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ripple.control.probes import Shows
    from ripple.model.pipeline.plan import Plan
    from worker.supervisor.slot import Slot
    from worker.supervisor.supervisor import Supervisor


def probes_of(
    worker: Supervisor, about: Mapping[str, object] = MappingProxyType({})
) -> dict[str, Shows]:
    """Return the pages of the health port. about: the pipeline's description for /graph."""

    def health() -> Page:
        status, text = worker.lifecycle.health_answer
        return Page(f"{text}\n", status)

    def ready() -> Page:
        status, text = worker.lifecycle.ready_answer
        return Page(f"{text}\n", status)

    def alerts() -> Page:
        return json_page(worker.watch.listed)

    async def graph() -> Page:
        found = {"version": 1, "worker": worker.lifecycle.worker_id}
        return json_page(found | dict(about) | {"partitions": await worker.inspected()})

    return {"/health": health, "/ready": ready, "/alerts": alerts, "/graph": graph}


def metrics_of(
    worker: Supervisor,
    own: Callable[[], Samples] = Samples,
    plan: Plan | None = None,
    settings: Sequence[Mapping[str, object]] = (),
) -> dict[str, Callable[[], Page]]:
    """Return the pages of the metrics port. own: the supervisor's own samples.

    ``/numbers`` is ``/metrics`` as JSON, ``/pipeline`` the plan, and ``/settings`` those in force,
    all for the dashboard.
    """

    def metrics() -> Page:
        text = exposition(OF_WORKERS, samples_of(worker, own()))
        return Page(text, content_type=CONTENT_TYPE)

    def numbers() -> Page:
        return _json(samples_of(worker, own()).to_values())

    def pipeline() -> Page:
        return _json(drawing(plan)) if plan is not None else Page("no plan\n", 503)

    def in_force() -> Page:
        return _json(list(settings))

    return {"/metrics": metrics, "/numbers": numbers, "/pipeline": pipeline, "/settings": in_force}


def _json(values: object) -> Page:
    return Page(json.dumps(values, separators=(",", ":")), content_type="application/json")


def samples_of(worker: Supervisor, own: Samples) -> Samples:
    """Return the latest samples of the processes. A partition that is gone has no gauges."""
    found, report = Samples(), worker.report()
    found.include(own)
    for one in State:
        found.set("ripple_worker_state", one is worker.lifecycle.state, one.value)
    version = 0 if worker.assignment is None else worker.assignment.version
    found.set("ripple_worker_assignment_version", version)
    found.set("ripple_worker_incarnation", worker.incarnation or 0)
    firing = {alert.name for alert in worker.watch.firing}
    for name in RULES:
        found.set("ripple_worker_alert_firing", name in firing, name)
    found.set("ripple_worker_load", report.load)
    found.set("ripple_worker_partitions_live", len(report.live))
    found.set("ripple_worker_partitions_followed", len(report.followers))
    found.set("ripple_worker_partitions_failing", len(report.failed))
    fullest = report.backpressure.fill
    found.set("ripple_transport_backpressure_level", fullest, worker.lifecycle.worker_id)
    for slot in worker.slots:
        found.include(slot.samples)
        _of_slot(found, slot)
    return found


def _of_slot(found: Samples, slot: Slot) -> None:
    number = str(slot.number)
    found.set("ripple_worker_process_restarts_total", slot.start, number)
    if slot.report is not None:
        found.set("ripple_worker_backpressure", slot.report.backpressure.level, number)
    for queue in slot.queues:
        found.set("ripple_worker_queue_fill", queue.fill, queue.name, number)
        found.set("ripple_worker_queue_held", queue.held, queue.name, number)
        found.set("ripple_worker_queue_limit", queue.limit, queue.name, number)
    for partition, one in sorted(slot.standings.items()):
        labels = str(partition), number
        found.set("ripple_worker_partition_live", one.is_live, *labels)
        found.set("ripple_worker_partition_epoch", one.epoch or 0, *labels)
        found.set("ripple_worker_partition_events", one.events, *labels)
        found.set("ripple_worker_partition_rows_out", one.rows_out, *labels)

"""What a worker shows to whoever watches it: /health, /ready and /metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.extras import needed
from ripple.probes import Page
from worker.state import State

with needed("cluster", "the page of metrics"):
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
    from prometheus_client.exposition import generate_latest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prometheus_client.metrics_core import Metric

    from worker.supervisor import Supervisor

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def probes_of(worker: Supervisor) -> dict[str, Callable[[], Page]]:
    """Return the pages of the health port."""

    def health() -> Page:
        status, text = worker.lifecycle.health_answer
        return Page(f"{text}\n", status)

    def ready() -> Page:
        status, text = worker.lifecycle.ready_answer
        return Page(f"{text}\n", status)

    return {"/health": health, "/ready": ready}


def metrics_of(worker: Supervisor) -> dict[str, Callable[[], Page]]:
    """Return the page of the metrics port."""
    return {"/metrics": lambda: Page(exposition(worker), content_type=CONTENT_TYPE)}


def exposition(worker: Supervisor) -> str:
    """Return the text of the page, made when somebody asks."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(worker))
    return bytes(generate_latest(registry)).decode()


class _Collector:
    """What the processes have said last. A partition that is gone has no series."""

    def __init__(self, worker: Supervisor) -> None:
        self._worker = worker

    def collect(self) -> Iterator[Metric]:
        worker, report = self._worker, self._worker.report()
        state = GaugeMetricFamily("ripple_worker_state", "1 for where it stands", labels=["state"])
        for one in State:
            state.add_metric([one.value], one is worker.lifecycle.state)
        yield state
        version = 0 if worker.assignment is None else worker.assignment.version
        yield _gauge("assignment_version", "The newest version that it has heard of", version)
        yield _gauge("incarnation", "The version that let it in, 0 for none", worker.incarnation)
        yield _gauge("load", "Of its busiest process, 0 to 1", report.load)
        yield _gauge("partitions_live", "Owned, and caught up with", len(report.live))
        yield _gauge("partitions_followed", "About to move here", len(report.followers))
        yield _gauge("partitions_failing", "That do not get on", len(report.failed))
        starts = CounterMetricFamily(
            "ripple_worker_process_restarts", "Of each process", labels=["slot"]
        )
        for slot in worker.slots:
            starts.add_metric([str(slot.number)], slot.start)
        yield starts
        yield from self._of_queues()
        yield from self._of_partitions()

    def _of_queues(self) -> Iterator[Metric]:
        level = GaugeMetricFamily(
            "ripple_worker_backpressure",
            "Of the fullest queue: 1 it warns, 2 less is taken in, 3 nothing",
            labels=["slot"],
        )
        fill = GaugeMetricFamily(
            "ripple_worker_queue_fill", "How full, 0 to 1", labels=["queue", "slot"]
        )
        for slot in self._worker.slots:
            if slot.report is not None:
                level.add_metric([str(slot.number)], slot.report.backpressure.level)
            for queue in slot.queues:
                fill.add_metric([queue.name, str(slot.number)], queue.fill)
        yield from (level, fill)

    def _of_partitions(self) -> Iterator[Metric]:
        live = _by_partition("live", "1 once it has caught up")
        epoch = _by_partition("epoch", "Its owner's fencing number")
        events = _by_partition("events", "Records and markers applied since it came here")
        rows = _by_partition("rows_out", "Rows written since it came here")
        for slot in self._worker.slots:
            for partition, one in sorted(slot.standings.items()):
                labels = [str(partition), str(slot.number)]
                live.add_metric(labels, one.is_live)
                epoch.add_metric(labels, one.epoch or 0)
                events.add_metric(labels, one.events)
                rows.add_metric(labels, one.rows_out)
        yield from (live, epoch, events, rows)


def _gauge(name: str, about: str, value: float | None) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"ripple_worker_{name}", about, value=value or 0)


def _by_partition(name: str, about: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"ripple_worker_partition_{name}", about, labels=["partition", "slot"])

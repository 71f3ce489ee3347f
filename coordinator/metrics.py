"""What a coordinator knows as gauges for Prometheus, made when somebody asks."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from coordinator.views import Standing
from ripple.extras import needed

with needed("cluster", "the page of metrics"):
    from prometheus_client import CollectorRegistry
    from prometheus_client.core import GaugeMetricFamily
    from prometheus_client.exposition import generate_latest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from coordinator.shell import Shell
    from coordinator.status import Status

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
STANDINGS = (Standing.ACTIVE, Standing.SUSPECTED, Standing.DEAD)


def exposition(shell: Shell) -> str:
    """Return the text of the page."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(shell))
    return bytes(generate_latest(registry)).decode()


class _Collector:
    """Gauges of one coordinator. Workers that are gone have none."""

    def __init__(self, shell: Shell) -> None:
        self._shell = shell

    def collect(self) -> Iterator[GaugeMetricFamily]:
        status = self._shell.status
        yield _gauge("ready", "1 once the chain of assignments was read", status is not None)
        yield _gauge(
            "conversations", "Workers that speak with this replica", len(self._shell.talks)
        )
        if status is not None:
            yield from _of_cluster(status)
            yield from _of_workers(status)


def _of_cluster(status: Status) -> Iterator[GaugeMetricFamily]:
    yield _gauge("assignment_version", "The newest version of the assignment", status.version)
    yield _gauge("frozen", "1 while nothing changes but by command", status.frozen is not None)
    yield _gauge("partitions", "Partitions of all stages", status.partitions)
    yield _gauge("partitions_unowned", "Partitions that nobody owns", status.unowned)
    yield _gauge("moves", "Planned moves under way", len(status.moves))
    yield _gauge("pins", "Partitions that are pinned", len(status.pins))
    yield _gauge("replicas_heard", "Other coordinators whose views are fresh", len(status.replicas))
    yield _gauge("candidates", "Workers that wait to join", len(status.waiting))
    yield _gauge("problems", "What somebody should look at; see status", len(status.problems))
    standings = Counter(member.standing for member in status.members)
    workers = GaugeMetricFamily(
        "ripple_coordinator_workers", "Members by how they are seen", labels=["standing"]
    )
    for standing in STANDINGS:
        workers.add_metric([standing.value], standings[standing])
    yield workers


def _of_workers(status: Status) -> Iterator[GaugeMetricFamily]:
    owned = _by_worker("partitions", "Partitions that a worker owns")
    silent = _by_worker("silent_seconds", "For how long nobody has heard a worker")
    load = _by_worker("load", "A worker's load, 0 to 1, as it said last")
    for member in status.members:
        owned.add_metric([member.id], member.partitions)
        silent.add_metric([member.id], member.silent_ms / 1000)
        if member.load is not None:
            load.add_metric([member.id], member.load)
    yield from (owned, silent, load)


def _gauge(name: str, about: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"ripple_coordinator_{name}", about, value=value)


def _by_worker(name: str, about: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"ripple_coordinator_worker_{name}", about, labels=["worker"])

"""HTTP pages of a coordinator: /health, /ready, /alerts, /metrics and /scale."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

from coordinator.metrics import samples_of
from ripple.control.probes import Page, json_page
from ripple.control.telemetry.exposition import CONTENT_TYPE, exposition
from ripple.control.telemetry.metrics import OF_COORDINATORS

if TYPE_CHECKING:
    from collections.abc import Callable

    from coordinator.service.shell import Shell
    from ripple.control.telemetry.samples import Samples
    from ripple.control.validity import Validity
    from ripple.storage.store import CountedStore


def probes_of(shell: Shell) -> dict[str, Callable[[], Page]]:
    """Return the pages of the health port: alive, and whether it has read the chain."""

    def health() -> Page:
        found = {"status": "ok"} | health_of(shell)
        return json_page(found)

    def ready() -> Page:
        if not shell.is_ready:
            return Page("NOT READY: the chain in the store has not been read yet\n", 503)
        return Page("READY\n")

    def alerts() -> Page:
        return json_page(alerts_of(shell))

    return {"/health": health, "/ready": ready, "/alerts": alerts}


def health_of(shell: Shell) -> dict[str, object]:
    """Return the status of a cluster, as JSON values."""
    status = shell.status
    found: dict[str, object] = {"replica": shell.replica}
    if status is not None:
        active, workers, partitions, version = status.summary
        found |= {"active": active, "workers": workers, "partitions": partitions}
        found |= {"version": version, "frozen": status.frozen}
        found["problems"] = list(status.problems)
    return found


def alerts_of(shell: Shell | None) -> list[dict[str, object]]:
    """Return the alerts of a cluster's workers, as JSON values."""
    status = None if shell is None else shell.status
    alerts = () if status is None else status.alerts
    return [{"worker": one.worker} | asdict(one.alert) for one in alerts]


def samples_of_process(
    shell: Shell, validity: Validity | None, store: CountedStore | None
) -> Samples:
    """Return the samples of a coordinator, with its certificate and its requests to the store."""
    found = samples_of(shell)
    if validity is not None:
        found.set("ripple_coordinator_certificate_seconds_left", validity.left_s)
    if store is not None:
        found.set_each("ripple_coordinator_store_requests_total", store.requests)
        found.set_each("ripple_coordinator_store_bytes_total", store.length_bytes)
    return found


def metrics_of(
    shell: Shell, validity: Validity | None = None, store: CountedStore | None = None
) -> dict[str, Callable[[], Page]]:
    """Return the pages of the metrics port: for Prometheus, and for an autoscaler."""

    def metrics() -> Page:
        found = samples_of_process(shell, validity, store)
        return Page(exposition(OF_COORDINATORS, found), content_type=CONTENT_TYPE)

    def scale() -> Page:
        status = shell.status
        if status is None or status.scale is None:
            return Page("NOT KNOWN: a worker has not reported its load yet\n", 503)
        return json_page(asdict(status.scale))

    return {"/metrics": metrics, "/scale": scale}

"""The settings of ``ripple-coordinator``: its limits, and what its process needs.

The names of Ripple/OCaml (variables and file, which workers read as well) are read too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

from coordinator.decisions.limits import Limits
from ripple.control.process_settings import (
    END_WITH_STDIN,
    LOG,
    ROLES,
    TLS,
    FileOfRoles,
    check_lateness,
    check_log,
    check_pages,
    check_ports,
    check_store,
    milliseconds,
    others,
    roles_of,
    store,
    tls_of,
)
from ripple.core.errors import InputError, LimitError
from ripple.core.settings import (
    Alias,
    Arguments,
    InForce,
    Setting,
    SettingsError,
    as_text,
    in_force,
    missing,
)
from ripple.storage.log_uri import LogUri
from ripple.storage.store.s3_settings import S3, S3Settings
from ripple.world.addresses import is_loopback, joined
from ripple.world.tls import Tls

SECTION = "coordinator"
KAFKA = "kafka:"
# Settings of workers, in a file that they share with coordinators.
OTHERS = (
    "worker",
    "cluster.coordinator.host",
    "cluster.defaults.max_keys_per_partition",
    "cluster.defaults.backpressure",
)


def _port(given: Any) -> Any:
    """Read a port; Kubernetes may have put a service's address there."""
    if isinstance(given, str) and given.startswith("tcp://"):
        raise ValueError(
            "Kubernetes sets this variable for a service called ripple-coordinator: give "
            "--port, or enableServiceLinks: false"
        )
    return given


def _seconds(*names: str) -> tuple[Alias, ...]:
    return tuple(Alias(f"cluster.defaults.{name}", milliseconds) for name in names)


_PROCESS = (
    store("store of checkpoints and of the assignment: folder or s3://bucket/prefix"),
    Setting(
        name="cluster",
        help="name of the cluster, recorded in its store: a store of another cluster is rejected",
        default="ripple",
        places=(Alias("cluster.name"),),
    ),
    Setting(
        name="host",
        help="address to listen on",
        default="127.0.0.1",
    ),
    Setting(
        name="port",
        help="port of gRPC, for workers and commands",
        default=9200,
        variables=(Alias("RIPPLE_COORDINATOR_PORT", _port),),
        places=(Alias("cluster.coordinator.port"),),
    ),
    Setting(name="health_port", help="port of /health and /ready", default=9201),
    Setting(name="metrics_port", help="port of /metrics", default=9202),
    Setting(
        name="peers",
        help="other coordinators of this cluster as HOST:PORT, separated by commas; the own "
        "address is ignored",
        default="",
    ),
    Setting(
        name="dashboard",
        help="serve the dashboard, as described in docs/dashboard.md",
        default=False,
        places=(Alias("cluster.dashboard"),),
    ),
    Setting(name="dashboard_port", help="port of the dashboard", default=9203),
    Setting(
        name="dashboard_allow_commands",
        help="allow viewers of the dashboard to move, drain and freeze if there is no file of "
        "roles",
        default=False,
    ),
    Setting(
        name="retry_source",
        help="destination of dead letters that are retried from the dashboard: log:DIR/TOPIC or "
        "kafka:BROKERS/TOPIC; empty: none",
        default="",
    ),
    *ROLES,
    END_WITH_STDIN,
    *LOG,
    *TLS,
    *S3,
)

_ABOUT = {
    "partitions": "partitions of the first stage of a new cluster; must divide those of its inputs",
    "virtual_nodes": "points of each process on the consistent hash ring",
    "heartbeat_interval_ms": "period of workers' heartbeats",
    "suspected_after_ms": "silence after which a worker is suspected",
    "dead_after_ms": "silence in every fresh view after which a worker is evicted",
    "ended_after_ms": "the same for a worker whose stream has ended",
    "view_fresh_ms": "time for which another coordinator's view counts",
    "view_interval_ms": "period of writing views to the store while no other coordinator answers",
    "mass_silence_members": "number of silent workers, if more than a third, that is treated as "
    "the observers' fault",
    "mass_silence_ms": "time before workers are evicted in that case",
    "loop_late_max_ms": "delay after which a coordinator starts to observe anew",
    "join_collect_ms": "time for which join requests are batched",
    "version_interval_ms": "minimum time between versions of the assignment, except for commands",
    "jitter_ms": "maximum random delay before a proposal",
    "checkpoint_interval_ms": "period of checkpoint triggers of a worker",
    "moves_per_target": "planned moves to one process at once",
    "moves_away_per_target": "moves to one process at once, from leaving workers",
    "moves_min": "planned moves at once, if more than the percentage",
    "moves_percent": "planned moves at once, as a percentage of all partitions",
    "move_retry_ms": "time before a failed move is tried again",
    "standbys": "hot standbys of each partition: 0 or 1",
    "alert_silent_ms": "alert if a member is silent for longer",
    "rejoin_step_ms": "additional time that a flapping worker waits after each eviction",
    "rejoin_max_ms": "maximum time that a flapping worker waits",
    "candidates_max": "maximum number of workers that wait to join",
    "commands_max": "maximum number of pending commands",
    "command_wait_ms": "time after which a pending command is given up",
    "views_max": "maximum number of coordinators with stored views",
}

_PLACES = {
    "partitions": (
        Alias("cluster.defaults.num_partitions"),
        Alias("cluster.defaults.total_partitions"),
    ),
    "virtual_nodes": (Alias("cluster.defaults.virtual_nodes"),),
    "heartbeat_interval_ms": _seconds("heartbeat_interval_sec"),
    "dead_after_ms": _seconds("failure_detection_timeout_sec", "heartbeat_timeout_sec"),
    "checkpoint_interval_ms": _seconds("checkpoint_interval_sec"),
}

SETTINGS: tuple[Setting, ...] = _PROCESS + tuple(
    Setting(
        name=each.name,
        help=_ABOUT[each.name],
        default=getattr(Limits(), each.name),
        places=_PLACES.get(each.name, ()),
    )
    for each in fields(Limits)
)

# Defaults that are derived from dead_after_ms.
_DERIVED: dict[str, Callable[[int], int]] = {
    "suspected_after_ms": lambda dead_ms: dead_ms // 2,
    "mass_silence_ms": lambda dead_ms: max(Limits().mass_silence_ms, 2 * dead_ms),
}


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a coordinator, and the origin of each value."""

    store: str
    cluster: str
    host: str
    port: int
    health_port: int
    metrics_port: int
    dashboard: bool
    dashboard_port: int
    dashboard_allow_commands: bool
    retry_source: str
    roles: FileOfRoles | None
    pages_without_tls: bool
    peers: tuple[str, ...]
    end_with_stdin: bool
    log_format: str
    log_level: str
    tls: Tls | None
    s3: S3Settings
    limits: Limits
    origins: Mapping[str, InForce]

    @property
    def text(self) -> str:
        """The output of ``--check-config``: the same settings as a file, with origins."""
        return as_text(SETTINGS, self.origins, SECTION)


def load(given: Arguments, environment: Mapping[str, str], file: Mapping[str, Any]) -> Settings:
    """Return the effective settings. Raises SettingsError."""
    check_lateness(file)
    found = in_force(SETTINGS, given, environment, file, section=SECTION, others=OTHERS)
    problems = missing(SETTINGS, found)
    if problems:
        raise SettingsError("; ".join(problems))
    _derive(found)
    check_store(found)
    check_log(found)
    check_ports(found, ("port", "health_port", "metrics_port", "dashboard_port"))
    values: dict[str, Any] = {name: one.value for name, one in found.items()}
    values["tls"] = tls_of(values, found)
    values["roles"] = roles_of(values, found)
    check_pages(values, found)
    _check_dashboard(values, found)
    _check_retry_source(found["retry_source"])
    values["s3"] = S3Settings.taken(values)
    values["peers"] = others("peers", values["tls"], found)
    try:
        limits = Limits(**{each.name: values.pop(each.name) for each in fields(Limits)})
    except LimitError as error:
        origins = "; ".join(
            f"{name} is from {one.origin}" for name, one in found.items() if name in str(error)
        )
        raise SettingsError(f"{error} ({origins})") from error
    return Settings(**values, limits=limits, origins=found)


def _check_dashboard(values: Mapping[str, Any], found: Mapping[str, InForce]) -> None:
    """Reject an open dashboard on a network without roles."""
    if not values["dashboard"] or is_loopback(joined(values["host"], 0)):
        return
    if values["roles"] is None:
        raise SettingsError(
            f"dashboard (from {found['dashboard'].origin}) would be open to the network at "
            f"{values['host']}: give a file of roles, or listen on 127.0.0.1"
        )


def _check_retry_source(given: InForce) -> None:
    """Reject now what a retry would fail with, perhaps weeks later."""
    if not given.value:
        return
    try:
        if not str(given.value).startswith(KAFKA):  # that command reports it
            LogUri.whole(str(given.value))
    except InputError as error:
        raise SettingsError(
            f"retry_source (from {given.origin}): {error}, or kafka:BROKERS/TOPIC"
        ) from error


def _derive(found: dict[str, InForce]) -> None:
    dead = found["dead_after_ms"]
    if dead.origin != "default":
        for name, derive in _DERIVED.items():
            if found[name].origin == "default":
                found[name] = InForce(derive(int(dead.value)), "default, from dead_after_ms")

"""The settings of ``ripple-coordinator``: its limits, and those of its process.

The names of Ripple/OCaml (variables and file, which workers read as well) are read too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from coordinator.decisions.limits import Limits
from ripple.control import process_settings as shared
from ripple.control.process_settings import PORTS, FileOfRoles, LogSettings
from ripple.core.errors import InputError, LimitError
from ripple.core.named_uris import name_and_uri, sources_listed
from ripple.core.setting import (
    Alias,
    Found,
    InForce,
    SettingsError,
    group,
    made,
    setting,
    settings_of,
    taking,
)
from ripple.core.settings import Arguments, as_text, in_force
from ripple.storage.log_uri import LogUri
from ripple.storage.store.s3_settings import S3Settings
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


def _dashboard(found: Found) -> bool:
    """Reject an open dashboard on a network without roles."""
    host, is_shown = str(found["host"].value), bool(found["dashboard"].value)
    if is_shown and not found["roles"].value and not is_loopback(joined(host, 0)):
        raise SettingsError(
            f"dashboard (from {found['dashboard'].origin}) would be open to the network at "
            f"{host}: give a file of roles, or listen on 127.0.0.1"
        )
    return is_shown


def _retry_source(found: Found) -> str:
    """Reject now values that a retry would fail with, perhaps weeks later."""
    given = found["retry_source"]
    place = str(given.value)
    try:
        for one in sources_listed(place) if place else ():
            target = name_and_uri(one)[1]
            if not target.startswith(KAFKA):  # that command reports it
                LogUri.whole(target)
    except InputError as error:
        raise SettingsError(
            f"retry_source (from {given.origin}): {error}, or kafka:BROKERS/TOPIC"
        ) from error
    return place


def _limits(found: Found) -> Limits:
    try:
        return Limits(**{one.name: int(found[one.name].value) for one in settings_of(Limits)})
    except LimitError as error:
        origins = "; ".join(
            f"{name} is from {one.origin}" for name, one in found.items() if name in str(error)
        )
        raise SettingsError(f"{error} ({origins})") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a coordinator, and the origin of each value."""

    store: str = shared.store(
        "store of checkpoints and of the assignment: folder or s3://bucket/prefix"
    )
    cluster: str = setting(
        "name of the cluster, recorded in its store: a store of another cluster is rejected",
        default="ripple",
        places=(Alias("cluster.name"),),
    )
    several_pipelines: bool = setting(
        "serve all pipelines of the record in the store; ripple pipeline adds them",
        default=False,
    )
    host: str = setting("address to listen on", default="127.0.0.1")
    port: int = setting(
        "port of gRPC, for workers and commands",
        default=9200,
        within=PORTS,
        variables=(Alias("RIPPLE_COORDINATOR_PORT", _port),),
        places=(Alias("cluster.coordinator.port"),),
    )
    health_port: int = setting("port of /health and /ready", default=9201, within=PORTS)
    metrics_port: int = setting("port of /metrics", default=9202, within=PORTS)
    peers: tuple[str, ...] = setting(
        "other coordinators of this cluster as HOST:PORT, separated by commas; the own "
        "address is ignored",
        default="",
        make=partial(shared.others, "peers"),
    )
    dashboard: bool = setting(
        "serve the dashboard, as described in docs/dashboard.md",
        default=False,
        make=_dashboard,
        places=(Alias("cluster.dashboard"),),
    )
    dashboard_port: int = setting("port of the dashboard", default=9203, within=PORTS)
    dashboard_allow_commands: bool = setting(
        "allow viewers of the dashboard to move, drain and freeze if there is no file of roles",
        default=False,
    )
    retry_source: str = setting(
        "destination of dead letters that are retried from the dashboard: log:DIR/TOPIC or "
        "kafka:BROKERS/TOPIC; of several sources each as SOURCE=URI, separated by commas; empty: "
        "none",
        default="",
        make=_retry_source,
    )
    roles: FileOfRoles | None = shared.roles()
    pages_without_tls: bool = shared.pages_without_tls()
    end_with_stdin: bool = shared.end_with_stdin()
    log: LogSettings = group(LogSettings)
    tls: Tls | None = shared.tls()
    s3: S3Settings = group(S3Settings)
    limits: Limits = taking(settings_of(Limits), _limits)
    origins: Found = shared.origins()

    @property
    def text(self) -> str:
        """The output of ``--check-config``: the same settings as a file, with origins."""
        return as_text(SETTINGS, self.origins, SECTION)


SETTINGS = settings_of(Settings)

# Defaults that are derived from dead_after_ms.
_DERIVED: dict[str, Callable[[int], int]] = {
    "suspected_after_ms": lambda dead_ms: dead_ms // 2,
    "mass_silence_ms": lambda dead_ms: max(Limits().mass_silence_ms, 2 * dead_ms),
}


def load(given: Arguments, environment: Mapping[str, str], file: Mapping[str, Any]) -> Settings:
    """Return the effective settings. Raises SettingsError."""
    shared.check_lateness(file)
    found = in_force(SETTINGS, given, environment, file, section=SECTION, others=OTHERS)
    _derive(found)
    shared.check_ports(found, ("port", "health_port", "metrics_port", "dashboard_port"))
    return made(Settings, found)


def _derive(found: dict[str, InForce]) -> None:
    dead = found["dead_after_ms"]
    if dead.origin != "default":
        for name, derive in _DERIVED.items():
            if found[name].origin == "default":
                found[name] = InForce(derive(int(dead.value)), "default, from dead_after_ms")

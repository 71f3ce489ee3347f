"""The settings of ``ripple-worker``: its limits, and what its processes need.

The names of Ripple/OCaml (variables and file, which coordinators read as well) are read too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from ripple.control.assignment.member import check_id
from ripple.control.process_settings import (
    END_WITH_STDIN,
    LOG,
    PAGES_WITHOUT_TLS,
    TLS,
    check_lateness,
    check_log,
    check_pages,
    check_ports,
    check_store,
    listed,
    milliseconds,
    others,
    store,
    tls_of,
)
from ripple.control.telemetry.alerts import AlertThresholds
from ripple.core.errors import LimitError, RippleError
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
from ripple.storage.store.s3_settings import S3, S3Settings, is_s3
from ripple.world import addresses
from ripple.world.tls import Tls
from worker.backpressure import DEFAULT, Thresholds
from worker.uris import check_places

if TYPE_CHECKING:
    from collections.abc import Sequence

SECTION = "worker"
PROCESSES_MAX = 1024
BATCH_ROWS_MAX = 1 << 20  # a batch is in memory as a whole
# Settings of coordinators, in a file that they share with workers.
OTHERS = (
    "coordinator",
    "cluster.name",
    "cluster.defaults.num_partitions",
    "cluster.defaults.total_partitions",
    "cluster.defaults.virtual_nodes",
    "cluster.defaults.failure_detection_timeout_sec",
    "cluster.defaults.heartbeat_timeout_sec",
)
_HOST, _PORT = "RIPPLE_COORDINATOR_HOST", "RIPPLE_COORDINATOR_PORT"
_COORDINATOR_PORT = 9200


def _threshold(name: str, help_: str, default: float) -> Setting:
    place = Alias(f"cluster.defaults.backpressure.{name}")
    return Setting(name=name, help=help_, default=default, places=(place,))


def _coordinator(held: Any) -> str:
    """Read Ripple/OCaml's table of host and port, or an address."""
    if isinstance(held, str):
        return held
    if not isinstance(held, Mapping) or not isinstance(held.get("host"), str):
        raise ValueError("not a table with a host")
    port = held.get("port", _COORDINATOR_PORT)
    if not isinstance(port, int | str):
        raise ValueError("the port is not a number")
    return addresses.joined(held["host"], int(port))


_ALERTS = {
    "alert_stabilization_ms": "alert if the p99 of stabilization takes longer",
    "alert_backpressure": "alert if a queue is fuller, 0 to 1",
    "alert_late_share": "alert if the share of very late events is larger, 0 to 1",
    "alert_checkpoint_ms": "alert if a partition's checkpoint is older and incomplete",
    "alert_silent_ms": "alert if no coordinator answers for longer",
}

SETTINGS: tuple[Setting, ...] = (
    Setting(
        name="pipeline",
        help="pipeline as FILE.py[:NAME]; may be given without the flag, as the first argument",
    ),
    Setting(
        name="coordinator",
        help="coordinators as HOST:PORT, separated by commas",
        variables=(Alias(_HOST),),
        places=(Alias("cluster.coordinator", _coordinator),),
    ),
    store(
        "store of checkpoints and of the assignment, the same as the coordinators': folder or "
        "s3://bucket/prefix"
    ),
    Setting(
        name="lanes",
        help="location of repartition topics, the same for all workers: folder, or "
        "kafka:BROKERS; by default the brokers of the source or of an output, otherwise "
        "the folder of the store",
        default="",
    ),
    Setting(
        name="cache",
        help="local folder, of this worker only, that caches checkpoints of a store in S3",
        default="",
    ),
    Setting(name="cache_mib", help="maximum size of the cache", default=10_240),
    Setting(
        name="source",
        help="input as log:DIR/TOPIC or kafka:BROKERS/TOPIC, whose partitions the workers share",
    ),
    Setting(
        name="sink",
        help="outputs as [OUTPUT=]log:DIR/TOPIC, separated by commas",
    ),
    Setting(name="worker_id", help="unique id of the worker", default="w0"),
    Setting(
        name="host",
        help="address to listen on, at which other processes reach this one",
        default="127.0.0.1",
    ),
    Setting(
        name="rpc_port",
        help="port of the first engine process, for deltas and for other stages; those of "
        "further processes are 500 apart",
        default=9101,
    ),
    Setting(name="health_port", help="port of /health and /ready", default=9100),
    Setting(name="metrics_port", help="port of /metrics", default=9102),
    Setting(name="processes", help="engine processes per worker; 0: one per CPU core", default=0),
    Setting(
        name="spares",
        help="spare processes, which have loaded the pipeline and replace one that fails",
        default=1,
    ),
    Setting(name="batch_rows", help="records per batch; the same for all workers", default=1000),
    Setting(
        name="commit_interval_ms",
        help="period of commits of outputs; 0: 1000, or 250 where one is a Kafka topic",
        default=0,
    ),
    Setting(
        name="checkpoint_interval_ms",
        help="period of checkpoints",
        default=10_000,
        places=(Alias("cluster.defaults.checkpoint_interval_sec", milliseconds),),
    ),
    Setting(
        name="checkpoint_debt_ms",
        help="replay time that triggers an earlier checkpoint of a partition; 0: never",
        default=3000,
    ),
    Setting(name="keep", help="number of checkpoints to keep", default=3),
    Setting(
        name="heartbeat_interval_ms",
        help="period of heartbeats; must be below the coordinators' suspected_after_ms",
        default=1000,
        places=(Alias("cluster.defaults.heartbeat_interval_sec", milliseconds),),
    ),
    Setting(
        name="hung_after_ms",
        help="time after which an engine process whose loop hangs dumps its stacks and is killed",
        default=30_000,
    ),
    _threshold(
        "warn_threshold",
        "fill of the fullest queue, 0 to 1, from which the worker warns",
        DEFAULT.warn_threshold,
    ),
    _threshold(
        "slow_threshold",
        "fill from which partitions of the first stage reduce their intake, and below which "
        "paused ones resume",
        DEFAULT.slow_threshold,
    ),
    _threshold(
        "pause_threshold", "fill from which they pause their intake", DEFAULT.pause_threshold
    ),
    *(
        Setting(name=name, help=help_, default=getattr(AlertThresholds(), name))
        for name, help_ in _ALERTS.items()
    ),
    Setting(
        name="max_keys_per_partition",
        help="alert if a partition holds more keys (of each open window); 0: none",
        default=AlertThresholds().max_keys_per_partition,
        places=(Alias("cluster.defaults.max_keys_per_partition"),),
    ),
    Setting(
        name="trace_endpoint",
        help="URL of an OTLP/HTTP collector of traces, as in http://localhost:4318/v1/traces; "
        "no traces without it",
        default="",
        variables=(Alias("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),),
    ),
    Setting(
        name="traces_per_s",
        help="traces per second that each process begins; incoming traces always continue",
        default=100,
    ),
    Setting(
        name="move_away_ms",
        help="time for partitions to move away when the worker is told to stop",
        default=25_000,
    ),
    Setting(
        name="stop_ms",
        help="time after which a worker that is told to stop ends, complete or not",
        default=29_000,
    ),
    PAGES_WITHOUT_TLS,
    END_WITH_STDIN,
    *LOG,
    *TLS,
    *S3,
)
_LEAST = {
    "batch_rows": 1,
    "commit_interval_ms": 0,
    "checkpoint_interval_ms": 1,
    "checkpoint_debt_ms": 0,
    "keep": 1,
    "heartbeat_interval_ms": 10,
    "hung_after_ms": 1000,
    "move_away_ms": 0,
    "stop_ms": 1000,
    "processes": 0,
    "spares": 0,
    "cache_mib": 1,
    "traces_per_s": 1,
    "max_keys_per_partition": 0,
}

_MOST = {
    "processes": PROCESSES_MAX,
    "spares": PROCESSES_MAX,
    "batch_rows": BATCH_ROWS_MAX,
    "heartbeat_interval_ms": 60_000,
}


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a worker, and the origin of each value."""

    pipeline: str
    coordinators: tuple[str, ...]
    store: str
    lanes: str
    cache: str
    cache_mib: int
    source: str
    sinks: tuple[str, ...]
    worker_id: str
    host: str
    rpc_port: int
    health_port: int
    metrics_port: int
    processes: int
    spares: int
    batch_rows: int
    commit_interval_ms: int
    checkpoint_interval_ms: int
    checkpoint_debt_ms: int
    keep: int
    heartbeat_interval_ms: int
    hung_after_ms: int
    thresholds: Thresholds
    alerts: AlertThresholds
    trace_endpoint: str
    traces_per_s: int
    move_away_ms: int
    stop_ms: int
    end_with_stdin: bool
    pages_without_tls: bool
    log_format: str
    log_level: str
    tls: Tls | None
    s3: S3Settings
    origins: Mapping[str, InForce]

    @property
    def root(self) -> str:
        """The folder of repartition topics that are logs; "" without one."""
        if self.lanes and not self.lanes.startswith("kafka:"):
            return self.lanes
        return "" if is_s3(self.store) else self.store

    @property
    def text(self) -> str:
        """The output of ``--check-config``: the same settings as a file, with origins."""
        return as_text(SETTINGS, self.origins, SECTION)


# Brokers of a URI whose topic is still to come, and the characters that may end it.
_BROKERS = re.compile(r"(^|=)kafka:[^/]*:[0-9]+$")
_MORE_BROKERS = re.compile(r"[^=:/]+:[0-9]+(/|$)|\[[^]]*\]:[0-9]+(/|$)")


def flags_of(given: Sequence[str]) -> list[str]:
    """Return arguments as flags: the pipeline stands first, ``--sink`` may be repeated."""
    left, sinks, others = list(given), [], []
    if left and not left[0].startswith("-"):
        others += ["--pipeline", left.pop(0)]
    while left:
        flag, has_value, value = left.pop(0).partition("=")
        if flag == "--partition-id":
            raise SettingsError(
                "--partition-id: coordinators decide which worker owns a partition; leave it out, "
                "and once it has joined say ripple cluster pin PARTITION WORKER"
            )
        if flag != "--sink":
            others.append(f"{flag}{has_value}{value}")
        elif has_value or left:
            sinks.append(value if has_value else left.pop(0))
        else:
            raise SettingsError("--sink needs a value")
    return [*others, "--sink", ",".join(sinks)] if sinks else others


def places_listed(text: str) -> tuple[str, ...]:
    """Read comma-separated URIs, one of which may have commas between brokers."""
    found: list[str] = []
    for one in listed(text):
        if found and _BROKERS.search(found[-1]) and _MORE_BROKERS.match(one):
            found[-1] += f",{one}"
        else:
            found.append(one)
    return tuple(found)


def load(given: Arguments, environment: Mapping[str, str], file: Mapping[str, Any]) -> Settings:
    """Return the effective settings. Raises SettingsError."""
    check_lateness(file)
    found = in_force(SETTINGS, given, _with_port(environment), file, section=SECTION, others=OTHERS)
    problems = missing(SETTINGS, found)
    if problems:
        raise SettingsError("; ".join(problems))
    for name, least in _LEAST.items():
        if int(found[name].value) < least:
            raise SettingsError(
                f"{name} is {found[name].value}, less than {least} (from {found[name].origin})"
            )
    for name, most in _MOST.items():
        if int(found[name].value) > most:
            raise SettingsError(
                f"{name} is {found[name].value}, more than {most} (from {found[name].origin})"
            )
    check_store(found)
    check_log(found)
    check_ports(found, ("rpc_port", "health_port", "metrics_port"))
    _check_worker(found)
    endpoint = found["trace_endpoint"]
    if endpoint.value and not str(endpoint.value).startswith(("http://", "https://")):
        raise SettingsError(
            f"trace_endpoint is {endpoint.value!r}, not an http(s) URL (from {endpoint.origin})"
        )
    values: dict[str, Any] = {name: one.value for name, one in found.items()}
    values["tls"] = tls_of(values, found)
    check_pages(values, found)
    values["s3"] = S3Settings.taken(values)
    del values["coordinator"]
    values["coordinators"] = others("coordinator", values["tls"], found)
    if not values["coordinators"]:
        raise SettingsError(f"coordinator is empty (from {found['coordinator'].origin})")
    values["sinks"] = places_listed(values.pop("sink"))
    check_places(found, values["sinks"])
    names = [one.name for one in fields(Thresholds)]
    try:
        values["thresholds"] = Thresholds(**{name: values.pop(name) for name in names})
    except LimitError as error:
        whence = ", ".join(found[name].origin for name in names)
        raise SettingsError(f"{error} (from {whence})") from error
    values["alerts"] = AlertThresholds(
        **{one.name: values.pop(one.name) for one in fields(AlertThresholds)}
    )
    return Settings(**values, origins=found)


def _check_worker(found: Mapping[str, InForce]) -> None:
    """Reject ids that no coordinator would accept, and shares outside 0 to 1."""
    try:
        check_id(str(found["worker_id"].value))
    except RippleError as error:
        raise SettingsError(f"worker_id: {error} (from {found['worker_id'].origin})") from error
    for name in ("alert_backpressure", "alert_late_share"):
        one = found[name]
        if not 0 <= float(one.value) <= 1:
            raise SettingsError(f"{name} is {one.value}, not from 0 to 1 (from {one.origin})")


def _with_port(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return the environment with Ripple/OCaml's host and port joined as one address."""
    host, port = environment.get(_HOST), environment.get(_PORT, str(_COORDINATOR_PORT))
    if not host or ":" in host:
        return environment
    # Kubernetes sets this variable to tcp://ADDRESS:PORT for a service of that name.
    return {**environment, _HOST: f"{host}:{port.rpartition(':')[2]}"}

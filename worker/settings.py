"""The settings of ``ripple-worker``: its limits, and the values that its processes need.

The names of Ripple/OCaml (variables and file, which coordinators read as well) are read too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ripple.control import process_settings as shared
from ripple.control.assignment.generations import FIRST, GENERATION_MAX, store_of
from ripple.control.assignment.member import check_id
from ripple.control.process_settings import PORTS, LogSettings
from ripple.control.telemetry.alerts import AlertThresholds
from ripple.core.errors import LimitError, RippleError
from ripple.core.named_uris import name_and_uri, sources_listed
from ripple.core.setting import (
    Alias,
    Found,
    InForce,
    SettingsError,
    group,
    made,
    milliseconds,
    setting,
    settings_of,
    taking,
)
from ripple.core.settings import Arguments, as_text, in_force
from ripple.storage.store.s3_settings import S3Settings, is_s3
from ripple.world import addresses
from ripple.world.tls import Tls
from worker.backpressure import Thresholds
from worker.uris import check_places

if TYPE_CHECKING:
    from collections.abc import Sequence

SECTION = "worker"
PROCESSES_MAX = 1024
BATCH_ROWS_MAX = 1 << 20  # a batch is in memory as a whole
CHECKPOINT_INTERVAL_MS = 120_000
# Settings of one pipeline; for several pipelines the record has them.
OF_ONE = ("pipeline", "source", "sink", "pipeline_name", "generation", "partitions")
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


# Brokers of a URI whose topic is still to come, and the characters that may end it.
_BROKERS = re.compile(r"(^|=)kafka:[^/]*:[0-9]+$")
_MORE_BROKERS = re.compile(r"[^=:/]+:[0-9]+(/|$)|\[[^]]*\]:[0-9]+(/|$)")


def places_listed(text: str) -> tuple[str, ...]:
    """Read comma-separated URIs, one of which may have commas between brokers."""
    found: list[str] = []
    for one in shared.listed(text):
        if found and _BROKERS.search(found[-1]) and _MORE_BROKERS.match(one):
            found[-1] += f",{one}"
        else:
            found.append(one)
    return tuple(found)


def _coordinators(found: Found) -> tuple[str, ...]:
    addresses = shared.others("coordinator", found)
    if not addresses:
        raise SettingsError(f"coordinator is empty (from {found['coordinator'].origin})")
    return addresses


def _sources(found: Found) -> tuple[str, ...]:
    return sources_listed(str(found["source"].value))


def _sinks(found: Found) -> tuple[str, ...]:
    return places_listed(str(found["sink"].value))


def _worker_id(found: Found) -> str:
    given = found["worker_id"]
    try:
        check_id(str(given.value))
    except RippleError as error:
        raise SettingsError(f"worker_id: {error} (from {given.origin})") from error
    return str(given.value)


def _check_generation(settings: Settings) -> None:
    """Raise SettingsError where a later generation could not have its logs."""
    if settings.generation == FIRST:
        return
    for name, is_wrong in (("store", is_s3(settings.store)), ("lanes", bool(settings.lanes))):
        if is_wrong:
            given = settings.origins[name]
            raise SettingsError(
                f"{name} is {given.value} (from {given.origin}): generation {settings.generation} "
                "has logs of its own, in the folder of its store"
            )


def _trace_endpoint(found: Found) -> str:
    given = found["trace_endpoint"]
    if given.value and not str(given.value).startswith(("http://", "https://")):
        raise SettingsError(
            f"trace_endpoint is {given.value!r}, not an http(s) URL (from {given.origin})"
        )
    return str(given.value)


def _thresholds(found: Found) -> Thresholds:
    try:
        return made(Thresholds, found)
    except LimitError as error:
        whence = ", ".join(found[one.name].origin for one in settings_of(Thresholds))
        raise SettingsError(f"{error} (from {whence})") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a worker, and the origin of each value."""

    pipeline: str = setting(
        "pipeline as FILE.py[:NAME]; may be given without the flag, as the first argument"
    )
    pipelines: str = setting(
        "folder with the files of several pipelines, instead of one pipeline, its source and its "
        "outputs: runs all pipelines of the record in the store; ripple pipeline adds them",
        default="",
    )
    pipeline_name: str = setting("name of the pipeline, in a cluster of several", default="")
    coordinators: tuple[str, ...] = setting(
        "coordinators as HOST:PORT, separated by commas",
        name="coordinator",
        make=_coordinators,
        variables=(Alias(_HOST),),
        places=(Alias("cluster.coordinator", _coordinator),),
    )
    store: str = shared.store(
        "store of checkpoints and of the assignment, the same as the coordinators': folder or "
        "s3://bucket/prefix"
    )
    generation: int = setting(
        "generation of the pipeline, as ripple deploy numbers them; a later one than the first has "
        "its state in the store under cluster/gN",
        default=FIRST,
        least=FIRST,
        most=GENERATION_MAX,
    )
    lanes: str = setting(
        "location of repartition topics, the same for all workers: folder, or "
        "kafka:BROKERS; by default the brokers of the source or of an output, otherwise "
        "the folder of the store",
        default="",
    )
    cache: str = setting(
        "local folder, of this worker only, that caches checkpoints of a store in S3", default=""
    )
    cache_mib: int = setting("maximum size of the cache", default=10_240, least=1)
    sources: tuple[str, ...] = setting(
        "input as log:DIR/TOPIC or kafka:BROKERS/TOPIC, whose partitions the workers share; of "
        "several sources each as SOURCE=URI, separated by commas",
        name="source",
        make=_sources,
    )
    sinks: tuple[str, ...] = setting(
        "outputs as [OUTPUT=]log:DIR/TOPIC, separated by commas", name="sink", make=_sinks
    )
    worker_id: str = setting("unique id of the worker", default="w0", make=_worker_id)
    host: str = setting(
        "address to listen on, at which other processes reach this one", default="127.0.0.1"
    )
    rpc_port: int = setting(
        "port of the first engine process, for deltas and for other stages; those of "
        "further processes are 500 apart",
        default=9101,
        within=PORTS,
    )
    health_port: int = setting("port of /health and /ready", default=9100, within=PORTS)
    metrics_port: int = setting("port of /metrics", default=9102, within=PORTS)
    processes: int = setting(
        "engine processes per worker; 0: one per CPU core", default=0, least=0, most=PROCESSES_MAX
    )
    spares: int = setting(
        "spare processes, which have loaded the pipeline and replace one that fails",
        default=1,
        least=0,
        most=PROCESSES_MAX,
    )
    partitions: int = setting(
        "1: one partition of the first stage has all records, if sources or branches are not "
        "divided alike; any other number: the coordinators decide",
        default=0,
        least=0,
    )
    batch_rows: int = setting(
        "records per batch; the same for all workers", default=1000, least=1, most=BATCH_ROWS_MAX
    )
    commit_interval_ms: int = setting(
        "period of commits of outputs; 0: 1000, or 250 where one is a Kafka topic",
        default=0,
        least=0,
    )
    checkpoint_interval_ms: int = setting(
        "longest time between checkpoints of a partition with new records",
        default=CHECKPOINT_INTERVAL_MS,
        least=1,
        places=(Alias("cluster.defaults.checkpoint_interval_sec", milliseconds),),
    )
    checkpoint_debt_ms: int = setting(
        "replay time that triggers an earlier checkpoint of a partition; 0: never",
        default=3000,
        least=0,
    )
    checkpoint_debt_process_ms: int = setting(
        "replay time of all partitions of an engine process that triggers an earlier checkpoint of "
        "the one with most of it; 0: never",
        default=10_000,
        least=0,
    )
    keep: int = setting("number of checkpoints to keep", default=3, least=1)
    heartbeat_interval_ms: int = setting(
        "period of heartbeats; must be below the coordinators' suspected_after_ms",
        default=1000,
        least=10,
        most=60_000,
        places=(Alias("cluster.defaults.heartbeat_interval_sec", milliseconds),),
    )
    hung_after_ms: int = setting(
        "time after which an engine process whose loop hangs dumps its stacks and is killed",
        default=30_000,
        least=1000,
    )
    thresholds: Thresholds = taking(settings_of(Thresholds), _thresholds)
    alerts: AlertThresholds = group(AlertThresholds)
    trace_endpoint: str = setting(
        "URL of an OTLP/HTTP collector of traces, as in http://localhost:4318/v1/traces; "
        "no traces without it",
        default="",
        make=_trace_endpoint,
        variables=(Alias("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"),),
    )
    traces_per_s: int = setting(
        "traces per second that each process begins; incoming traces always continue",
        default=100,
        least=1,
    )
    move_away_ms: int = setting(
        "time for partitions to move away when the worker is told to stop",
        default=25_000,
        least=0,
    )
    stop_ms: int = setting(
        "time after which a worker that is told to stop ends, complete or not",
        default=29_000,
        least=1000,
    )
    pages_without_tls: bool = shared.pages_without_tls()
    end_with_stdin: bool = shared.end_with_stdin()
    log: LogSettings = group(LogSettings)
    tls: Tls | None = shared.tls()
    s3: S3Settings = group(S3Settings)
    origins: Found = shared.origins()

    @property
    def who(self) -> dict[str, str]:
        """The fields of each line of its log: its worker and pipeline."""
        named = {"pipeline": self.pipeline_name} if self.pipeline_name else {}
        return {"worker": self.worker_id, **named}

    @property
    def own_store(self) -> str:
        """The store of this generation."""
        return store_of(self.store, self.generation)

    @property
    def root(self) -> str:
        """The folder of repartition topics that are logs; "" without one."""
        if self.lanes and not self.lanes.startswith("kafka:"):
            return self.lanes
        return "" if is_s3(self.store) else self.own_store

    @property
    def text(self) -> str:
        """The output of ``--check-config``: the same settings as a file, with origins."""
        return as_text(SETTINGS, self.origins, SECTION)


SETTINGS = settings_of(Settings)


def flags_of(given: Sequence[str]) -> list[str]:
    """Return arguments as flags: the pipeline stands first.

    ``--sink`` may be repeated, and ``--source`` with the name of each.
    """
    left, others = list(given), []
    listed: dict[str, list[str]] = {"--source": [], "--sink": []}
    if left and not left[0].startswith("-"):
        others += ["--pipeline", left.pop(0)]
    while left:
        flag, has_value, value = left.pop(0).partition("=")
        if flag == "--partition-id":
            raise SettingsError(
                "--partition-id: coordinators decide which worker owns a partition; leave it out, "
                "and once it has joined say ripple cluster pin PARTITION WORKER"
            )
        if flag not in listed:
            others.append(f"{flag}{has_value}{value}")
        elif has_value or left:
            listed[flag].append(value if has_value else left.pop(0))
        else:
            raise SettingsError(f"{flag} needs a value")
    if not all(name_and_uri(text)[0] for text in listed["--source"]):
        del listed["--source"][:-1]  # without names the last one counts, as of other flags
    for flag, values in listed.items():
        others += [flag, ",".join(values)] if values else []
    return others


def load(given: Arguments, environment: Mapping[str, str], file: Mapping[str, Any]) -> Settings:
    """Return the effective settings. Raises SettingsError."""
    shared.check_lateness(file)
    found = in_force(SETTINGS, given, _with_port(environment), file, section=SECTION, others=OTHERS)
    is_host = "pipelines" in found and bool(found["pipelines"].value)
    if is_host:
        _leave_out(found)
    shared.check_ports(found, ("rpc_port", "health_port", "metrics_port"))
    settings = made(Settings, found)
    if is_host:
        return settings
    check_places(found, settings.sources, settings.sinks)
    _check_generation(settings)
    return settings


def _leave_out(found: dict[str, InForce]) -> None:
    """Leave the settings of one pipeline to the record. Raises SettingsError."""
    for name in OF_ONE:
        given = found.get(name)
        if given is not None and given.origin != "default":
            raise SettingsError(
                f"{name} (from {given.origin}) is of one pipeline: leave it out beside pipelines, "
                "whose record has it, or leave pipelines out"
            )
        found.setdefault(name, InForce("", "the record of pipelines"))


def _with_port(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return the environment with Ripple/OCaml's host and port joined as one address."""
    host, port = environment.get(_HOST), environment.get(_PORT, str(_COORDINATOR_PORT))
    if not host or ":" in host:
        return environment
    # Kubernetes sets this variable to tcp://ADDRESS:PORT for a service of that name.
    return {**environment, _HOST: f"{host}:{port.rpartition(':')[2]}"}

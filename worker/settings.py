"""The settings of ``ripple-worker``: every limit, and what its processes need beside.

The names of the book are read too: its variables, and its file, which coordinators read as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ripple.settings import (
    Alias,
    Arguments,
    InForce,
    Setting,
    SettingsError,
    as_text,
    in_force,
    missing,
)
from ripple.world import addresses
from ripple.world.tls import Tls

if TYPE_CHECKING:
    from collections.abc import Sequence

SECTION = "worker"
PORT_MAX = 65_535
PROCESSES_MAX = 1024
# What only coordinators read of a file that they share with workers.
OTHERS = (
    "coordinator",
    "cluster.name",
    "cluster.defaults.num_partitions",
    "cluster.defaults.total_partitions",
    "cluster.defaults.virtual_nodes",
    "cluster.defaults.max_keys_per_partition",
    "cluster.defaults.failure_detection_timeout_sec",
    "cluster.defaults.heartbeat_timeout_sec",
    "cluster.defaults.allowed_lateness_sec",
    "cluster.defaults.backpressure",
)
_HOST, _PORT = "RIPPLE_COORDINATOR_HOST", "RIPPLE_COORDINATOR_PORT"
_COORDINATOR_PORT = 9200


def _milliseconds(seconds: Any) -> int:
    """Read seconds, as the book has them."""
    if isinstance(seconds, bool):
        raise ValueError("not a number of seconds")
    value = float(seconds) * 1000
    if not 0 < value < 2**53 or value != int(value):
        raise ValueError("not a number of seconds with at most three decimals")
    return int(value)


def _bucket(name: Any) -> str:
    """Read the name of a bucket as the store in it."""
    if not isinstance(name, str) or not name:
        raise ValueError("not the name of a bucket")
    return name if "://" in name else f"s3://{name}"


def _store(held: Any) -> str:
    """Read the book's ``checkpoint_store``: a backend and where it is."""
    if not isinstance(held, Mapping):
        raise ValueError("not a table with a backend")
    needed = {"s3": "bucket", "disk": "path", "local": "path"}.get(str(held.get("backend")).lower())
    if needed is None:
        raise ValueError("its backend is none of S3 and Disk")
    if not isinstance(held.get(needed), str):
        raise ValueError(f"it has no {needed}")
    place = held[needed] if needed == "path" else f"s3://{held[needed]}"
    return f"{place}/{held['prefix']}" if held.get("prefix") else place


def _coordinator(held: Any) -> str:
    """Read the book's table of host and port, or an address."""
    if isinstance(held, str):
        return held
    if not isinstance(held, Mapping) or not isinstance(held.get("host"), str):
        raise ValueError("not a table with a host")
    return addresses.joined(held["host"], int(held.get("port", _COORDINATOR_PORT)))


SETTINGS: tuple[Setting, ...] = (
    Setting(name="pipeline", help="FILE.py[:NAME]: also without the flag, as the first argument"),
    Setting(
        name="coordinator",
        help="HOST:PORT of each coordinator, separated by commas",
        variables=(Alias(_HOST),),
        places=(Alias("cluster.coordinator", _coordinator),),
    ),
    Setting(
        name="store",
        help="folder or s3://bucket/prefix of checkpoints and of the assignment: the coordinators'",
        variables=(Alias("RIPPLE_CHECKPOINT_BUCKET", _bucket),),
        places=(Alias("cluster.checkpoint_store", _store),),
    ),
    Setting(name="source", help="log:DIR/TOPIC, whose partitions are divided"),
    Setting(
        name="sink",
        help="[OUTPUT=]log:DIR/TOPIC of each output that is wanted, separated by commas",
    ),
    Setting(name="worker_id", help="the worker's name, of which there is one", default="w0"),
    Setting(
        name="host", help="the address to listen at, and where others find it", default="127.0.0.1"
    ),
    Setting(
        name="rpc_port",
        help="deltas, of the first process; those of others are 500 apart",
        default=9101,
    ),
    Setting(name="health_port", help="/health and /ready", default=9100),
    Setting(name="metrics_port", help="/metrics", default=9102),
    Setting(name="processes", help="that compute; 0: one for each processor", default=0),
    Setting(name="batch_rows", help="records between two cuts; the same everywhere", default=1000),
    Setting(name="commit_interval_ms", help="how often outputs are committed", default=1000),
    Setting(
        name="checkpoint_interval_ms",
        help="how often checkpoints are stored",
        default=10_000,
        places=(Alias("cluster.defaults.checkpoint_interval_sec", _milliseconds),),
    ),
    Setting(name="keep", help="checkpoints that are not deleted", default=3),
    Setting(
        name="heartbeat_interval_ms",
        help="how often it says that it is well",
        default=1000,
        places=(Alias("cluster.defaults.heartbeat_interval_sec", _milliseconds),),
    ),
    Setting(
        name="hung_after_ms",
        help="a process whose loop does not turn for so long is dumped and killed",
        default=30_000,
    ),
    Setting(
        name="move_away_ms",
        help="how long one that is told to stop waits for its partitions to move away",
        default=25_000,
    ),
    Setting(
        name="stop_ms",
        help="after so long, one that is told to stop has stopped, whatever is not complete",
        default=29_000,
    ),
    Setting(name="tls_certificate", help="file of this process's certificate", default=""),
    Setting(name="tls_key", help="file of its private key", default=""),
    Setting(
        name="tls_authority",
        help="file of the authority whose certificates are believed (ripple cert makes all three)",
        default="",
    ),
    Setting(
        name="insecure",
        help="speak without TLS although there are certificates; on this machine only",
        default=False,
    ),
)
_LEAST = {
    "batch_rows": 1,
    "commit_interval_ms": 1,
    "checkpoint_interval_ms": 1,
    "keep": 1,
    "heartbeat_interval_ms": 10,
    "hung_after_ms": 1000,
    "move_away_ms": 0,
    "stop_ms": 1000,
    "processes": 0,
}


@dataclass(frozen=True, slots=True)
class Settings:
    """What a worker runs with, and where each value came from."""

    pipeline: str
    coordinators: tuple[str, ...]
    store: str
    source: str
    sinks: tuple[str, ...]
    worker_id: str
    host: str
    rpc_port: int
    health_port: int
    metrics_port: int
    processes: int
    batch_rows: int
    commit_interval_ms: int
    checkpoint_interval_ms: int
    keep: int
    heartbeat_interval_ms: int
    hung_after_ms: int
    move_away_ms: int
    stop_ms: int
    tls: Tls | None
    origins: Mapping[str, InForce]

    @property
    def text(self) -> str:
        """What ``--check-config`` prints: a file that says the same, with origins."""
        return as_text(SETTINGS, self.origins, SECTION)


def flags_of(given: Sequence[str]) -> list[str]:
    """Return arguments as flags: the pipeline stands first, ``--sink`` may come several times."""
    left, sinks, others = list(given), [], []
    if left and not left[0].startswith("-"):
        others += ["--pipeline", left.pop(0)]
    while left:
        flag, has_value, value = left.pop(0).partition("=")
        if flag != "--sink":
            others.append(f"{flag}{has_value}{value}")
        elif has_value or left:
            sinks.append(value if has_value else left.pop(0))
        else:
            raise SettingsError("--sink needs a value")
    return [*others, "--sink", ",".join(sinks)] if sinks else others


def load(given: Arguments, environment: Mapping[str, str], file: Mapping[str, Any]) -> Settings:
    """Return the settings in force. Raises SettingsError."""
    found = in_force(SETTINGS, given, _with_port(environment), file, section=SECTION, others=OTHERS)
    problems = missing(SETTINGS, found)
    if problems:
        raise SettingsError("; ".join(problems))
    for name, least in _LEAST.items():
        if int(found[name].value) < least:
            raise SettingsError(
                f"{name} is {found[name].value}, less than {least} (from {found[name].origin})"
            )
    if int(found["processes"].value) > PROCESSES_MAX:
        raise SettingsError(f"processes is {found['processes'].value}, more than {PROCESSES_MAX}")
    _check_ports(found)
    values: dict[str, Any] = {name: one.value for name, one in found.items()}
    values["tls"] = _tls(values, found)
    values["coordinators"] = _listed(values.pop("coordinator"))
    for address in values["coordinators"]:
        try:
            addresses.check_secured(address, values["tls"])
        except ValueError as error:
            raise SettingsError(
                f"coordinator: {error} (from {found['coordinator'].origin})"
            ) from error
    values["sinks"] = _listed(values.pop("sink"))
    return Settings(**values, origins=found)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(one.strip() for one in text.split(",") if one.strip())


def _with_port(environment: Mapping[str, str]) -> Mapping[str, str]:
    """Return the environment with the book's host and port of the coordinator as one address."""
    host, port = environment.get(_HOST), environment.get(_PORT, str(_COORDINATOR_PORT))
    if not host or ":" in host:
        return environment
    # Kubernetes sets this variable to tcp://ADDRESS:PORT for a service of that name.
    return {**environment, _HOST: f"{host}:{port.rpartition(':')[2]}"}


def _tls(values: dict[str, Any], found: Mapping[str, InForce]) -> Tls | None:
    """Take what says whom to believe out of the values. Plain bytes stay on this machine."""
    files = {name: values.pop(f"tls_{name}") for name in ("certificate", "key", "authority")}
    is_insecure = values.pop("insecure")
    absent = [f"tls_{name}" for name, path in files.items() if not path]
    if 0 < len(absent) < len(files):
        raise SettingsError(f"{' and '.join(absent)} is missing: TLS needs all three files")
    tls = None if absent or is_insecure else Tls(**files)
    try:
        addresses.check_secured(addresses.joined(values["host"], 0), tls)
    except ValueError:
        raise SettingsError(
            f"host is {values['host']} (from {found['host'].origin}), where others on the network "
            "could read and change what is said: give tls_certificate, tls_key and tls_authority "
            "(ripple cert makes them) and no insecure, or listen on 127.0.0.1"
        ) from None
    return tls


def _check_ports(found: Mapping[str, InForce]) -> None:
    """Refuse ports that are none, or are the same; 0 is any that is free."""
    taken: dict[Any, str] = {}
    for name in ("rpc_port", "health_port", "metrics_port"):
        port, origin = found[name].value, found[name].origin
        if not 0 <= int(port) <= PORT_MAX:
            raise SettingsError(f"{name} is {port}, not from 0 to {PORT_MAX} (from {origin})")
        if port and port in taken:
            raise SettingsError(f"{name} and {taken[port]} are both {port} (from {origin})")
        taken[port] = name

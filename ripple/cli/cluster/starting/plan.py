"""The processes of a local cluster, and their command lines."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from ripple.connectors.registry import connector_of
from ripple.control.assignment.generations import FIRST, store_of
from ripple.control.process_settings import PROCESS_PORTS_APART
from ripple.core.errors import InputError
from ripple.core.named_uris import name_and_uri, sources_listed
from ripple.storage.log_uri import PREFIX, LogUri
from ripple.world.live import LiveRandom

HOST = "127.0.0.1"
COORDINATOR_PORTS = 9200
WORKER_PORTS = 9100
PORTS_APART = 10
# Below the ephemeral ports of systems (Linux from 32,768 on), so that a process that is
# restarted finds its own free.
FREE_PORTS = range(15_000, 32_000)
TRIES = 1000
_PORT_FLAGS = ("--port", "--health-port", "--metrics-port", "--rpc-port")


@dataclass(frozen=True, slots=True)
class Asked:
    """The arguments of ``ripple cluster up``.

    pipeline: FILE.py[:NAME]. source, sinks: as workers take them. partitions: of the first stage
    of a new cluster; needs_one: whether it must be one. store: "" for the folder. free_ports: any
    free ports, instead of the documented ones. generation: of the pipeline; all name one store.
    """

    pipeline: str
    source: str
    sinks: tuple[str, ...]
    folder: str
    workers: int
    processes: int
    coordinators: int
    partitions: int
    needs_one: bool = False
    store: str = ""
    free_ports: bool = False
    dashboard: int | None = None
    allow_commands: bool = False
    generation: int = FIRST


@dataclass(frozen=True, slots=True)
class Planned:
    """A process: its name and command. Workers stop before coordinators."""

    name: str
    command: tuple[str, ...]
    is_worker: bool


def processes(asked: Asked) -> list[Planned]:
    """Return the processes, in the order of their start. Raises InputError."""
    ports = _ports(asked)
    coordinators = [ports.pop(0) for _ in range(asked.coordinators)]
    addresses = [f"{HOST}:{one[0]}" for one in coordinators]
    store = asked.store or f"{asked.folder}/store"
    found = []
    for number, (port, health, metrics) in enumerate(coordinators, 1):
        peers = [address for address in addresses if address != f"{HOST}:{port}"]
        flags = {
            "store": store_of(store, asked.generation),
            "host": HOST,
            "port": port,
            "health-port": health,
            "metrics-port": metrics,
            "partitions": asked.partitions,
            **({"peers": ",".join(peers)} if peers else {}),
            **(_dashboard(asked) if number == 1 else {}),
        }
        command = (sys.executable, "-m", "coordinator", *_flags(flags.items()))
        found.append(Planned(f"coordinator-{number}", command, is_worker=False))
    for number, (health, data, metrics) in enumerate(ports, 1):
        name = f"worker-{number}"
        flags = {
            "worker-id": name,
            "coordinator": ",".join(addresses),
            "store": store,
            **({"generation": asked.generation} if asked.generation != FIRST else {}),
            **(_own_folders(asked, name) if asked.store else {}),
            "source": asked.source,
            "host": HOST,
            "processes": asked.processes,
            "health-port": health,
            "rpc-port": data,
            "metrics-port": metrics,
            "sink": ",".join(asked.sinks),
            **({"partitions": asked.partitions} if asked.needs_one else {}),
        }
        command = (sys.executable, "-m", "worker", asked.pipeline, *_flags(flags.items()))
        found.append(Planned(name, command, is_worker=True))
    return found


def _own_folders(asked: Asked, name: str) -> dict[str, str]:
    """Return a worker's own folders, outside of the store."""
    found = {"cache": f"{asked.folder}/cache/{name}"}
    places = (*sources_listed(asked.source), *asked.sinks)
    connectors = [connector_of(name_and_uri(place)[1]) for place in places]
    has_own = asked.generation != FIRST  # lanes, in its store
    if not has_own and not any(one is not None and one.lanes for one in connectors):
        found["lanes"] = f"{asked.folder}/lanes"
    return found


def _dashboard(asked: Asked) -> dict[str, object]:
    """Return the settings of the dashboard."""
    if asked.dashboard is None:
        return {}
    allowed = {"dashboard-allow-commands": "true"} if asked.allow_commands else {}
    takes = [text for text in sources_listed(asked.source) if _takes(name_and_uri(text)[1])]
    retried = {"retry-source": ",".join(takes)} if takes else {}
    return {"dashboard": "true", "dashboard-port": asked.dashboard, **allowed, **retried}


def _takes(source: str) -> bool:
    """Return whether records of dead letters can be appended to a source."""
    connector = connector_of(source)
    is_topic = source.startswith(PREFIX) and LogUri.parse(source).partition is None
    return is_topic or (connector is not None and bool(connector.retries))


def coordinators_of(planned: Sequence[Planned]) -> str:
    """Return the coordinators' addresses, as ``--coordinator`` takes them."""
    return ",".join(addresses_of(planned, "port"))


def addresses_of(planned: Sequence[Planned], flag: str, *, of_workers: bool = False) -> list[str]:
    """Return the address that a flag gives each coordinator, or each worker."""
    start = f"--{flag}="
    return [
        f"{HOST}:{given.removeprefix(start)}"
        for one in planned
        if one.is_worker == of_workers
        for given in one.command
        if given.startswith(start)
    ]


def taken_port(one: Planned) -> int | None:
    """Return the first port of a process that is in use, None if all are free."""
    for given in one.command:
        flag, _, value = given.partition("=")
        if flag in _PORT_FLAGS and not _is_free(int(value)):
            return int(value)
    return None


def _flags(pairs: Iterable[tuple[str, object]]) -> list[str]:
    return [
        "--end-with-stdin",
        "--log-format=text",
        *(f"--{name}={value}" for name, value in pairs),
    ]


def _ports(asked: Asked) -> list[tuple[int, int, int]]:
    """Return three ports for each process, coordinators first."""
    counts = (asked.coordinators, asked.workers)
    if asked.free_ports:
        return _free(asked)
    if max(counts) > (COORDINATOR_PORTS - WORKER_PORTS) // PORTS_APART:
        raise InputError("more than 10 workers or coordinators need --free-ports")
    found = [
        (first, first + 1, first + 2)
        for base, count in zip((COORDINATOR_PORTS, WORKER_PORTS), counts, strict=True)
        for first in range(base, base + count * PORTS_APART, PORTS_APART)
    ]
    for ports in found:
        for port in ports:
            _check_free(port)
    return found


def _check_free(port: int) -> None:
    if not _is_free(port):
        raise InputError(
            f"port {port} is taken: is another cluster up? --free-ports takes any free ones"
        )


def _is_free(port: int) -> bool:
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((HOST, port))
        except OSError:
            return False
    return True


def _free(asked: Asked) -> list[tuple[int, int, int]]:
    """Return free ports; all are held until all are found. Raises InputError."""
    counts = [1] * asked.coordinators + [asked.processes] * asked.workers
    with ExitStack() as held:
        return [(_hold(held), _hold(held, count), _hold(held)) for count in counts]


def _hold(held: ExitStack, count: int = 1) -> int:
    """Hold a free port, and those of further processes of its worker; return the first."""
    random, room = LiveRandom(), len(FREE_PORTS) - (count - 1) * PROCESS_PORTS_APART
    for _ in range(TRIES if room > 0 else 0):
        first = FREE_PORTS[random.below(room)]
        with ExitStack() as tried, suppress(OSError):
            for port in range(first, first + count * PROCESS_PORTS_APART, PROCESS_PORTS_APART):
                tried.enter_context(socket.create_server((HOST, port)))
            held.enter_context(tried.pop_all())
            return first
    raise InputError(
        f"no {count} ports {PROCESS_PORTS_APART} apart are free from {FREE_PORTS.start} on: give "
        "fewer --processes"
        if count > 1
        else f"no port from {FREE_PORTS.start} to {FREE_PORTS.stop - 1} is free"
    )

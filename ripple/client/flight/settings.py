"""The settings of ``ripple-gateway``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from ripple.control.process_settings import (
    END_WITH_STDIN,
    LOG,
    ROLES,
    TLS,
    TOKEN_FILE,
    FileOfRoles,
    check_log,
    check_pages,
    check_ports,
    listed,
    roles_of,
    tls_of,
    token_of,
)
from ripple.core.errors import InputError
from ripple.core.settings import Arguments, InForce, Setting, SettingsError, as_text, in_force
from ripple.storage.log_uri import LogUri
from ripple.world.addresses import check_secured
from ripple.world.tls import Tls

SECTION = "gateway"
# Settings of other processes, in a file that they share with gateways.
OTHERS = ("coordinator", "worker", "cluster")

SETTINGS: tuple[Setting, ...] = (
    Setting(
        name="coordinator",
        help="coordinator addresses, HOST:PORT, comma-separated",
        default="127.0.0.1:9200",
    ),
    Setting(name="host", help="address to listen on", default="127.0.0.1"),
    Setting(name="port", help="port for Arrow Flight", default=9300),
    Setting(name="health_port", help="port for /health and /ready", default=9301),
    Setting(
        name="write",
        help="logs that accept records of clients: NAME=log:DIR/TOPIC, comma-separated; "
        "they have no other writer meanwhile",
        default="",
    ),
    Setting(name="sql_timeout_s", help="time limit of a SQL query, in seconds", default=10),
    Setting(name="sql_memory_mib", help="memory limit of a SQL query, in MiB", default=256),
    END_WITH_STDIN,
    TOKEN_FILE,
    *ROLES,
    *LOG,
    *TLS,
)

_MOST = {"sql_timeout_s": 86_400, "sql_memory_mib": 1 << 20}


@dataclass(frozen=True, slots=True)
class Settings:
    """A gateway's settings, and the origin of each value. logs: URIs by name."""

    coordinators: tuple[str, ...]
    host: str
    port: int
    health_port: int
    logs: Mapping[str, str]
    sql_timeout_s: int
    sql_memory_mib: int
    end_with_stdin: bool
    log_format: str
    log_level: str
    tls: Tls | None
    token: Callable[[], str] = field(repr=False)
    roles: FileOfRoles | None
    pages_without_tls: bool
    origins: Mapping[str, InForce]

    @property
    def text(self) -> str:
        """The output of ``--check-config``: a valid configuration file, with origins."""
        return as_text(SETTINGS, self.origins, SECTION)


def load(given: Arguments, environment: Mapping[str, str], file: Mapping[str, Any]) -> Settings:
    """Load the settings. Raises SettingsError."""
    found = in_force(SETTINGS, given, environment, file, section=SECTION, others=OTHERS)
    check_log(found)
    check_ports(found, ("port", "health_port"))
    for name, most in _MOST.items():
        one = found[name]
        if not 1 <= int(one.value) <= most:
            raise SettingsError(f"{name} is {one.value}, not from 1 to {most} (from {one.origin})")
    values: dict[str, Any] = {name: one.value for name, one in found.items()}
    values["tls"] = tls_of(values, found)
    values["coordinators"] = _coordinators(values.pop("coordinator"), values["tls"], found)
    values["token"] = token_of(values, found)
    values["roles"] = roles_of(values, found)
    check_pages(values, found)
    values["logs"] = _logs(values.pop("write"), found)
    return Settings(**values, origins=found)


def _coordinators(text: str, tls: Tls | None, found: Mapping[str, InForce]) -> tuple[str, ...]:
    origin = found["coordinator"].origin
    addresses = listed(text)
    if not addresses:
        raise SettingsError(f"coordinator is empty (from {origin})")
    for address in addresses:
        try:
            check_secured(address, tls)
        except ValueError as error:
            raise SettingsError(f"coordinator: {error} (from {origin})") from None
    return addresses


def _logs(text: str, found: Mapping[str, InForce]) -> dict[str, str]:
    logs: dict[str, str] = {}
    taken: dict[PurePath, str] = {}
    for given in listed(text):
        name, equals, place = given.partition("=")
        if not (name and equals and place) or name in logs:
            wrong = "is there twice" if name in logs else "is not NAME=log:DIR/TOPIC"
            raise SettingsError(f"write: {given!r} {wrong} (from {found['write'].origin})")
        try:
            topic = LogUri.whole(place)
        except InputError as error:
            raise SettingsError(f"write: {error} (from {found['write'].origin})") from error
        at = PurePath(topic.folder, topic.topic)
        if at in taken:
            raise SettingsError(
                f"write: {taken[at]} and {name} are the same log (from {found['write'].origin})"
            )
        taken[at] = name
        logs[name] = place
    return logs

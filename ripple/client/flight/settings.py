"""The settings of ``ripple-gateway``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from ripple.control import process_settings as shared
from ripple.control.process_settings import PORTS, FileOfRoles, LogSettings, listed
from ripple.core.errors import InputError
from ripple.core.setting import Found, SettingsError, group, made, setting, settings_of
from ripple.core.settings import Arguments, as_text, in_force
from ripple.storage.log_uri import LogUri
from ripple.world.addresses import check_secured
from ripple.world.tls import Tls

SECTION = "gateway"
# Settings of other processes, in a file that they share with gateways.
OTHERS = ("coordinator", "worker", "cluster")


def _coordinators(found: Found) -> tuple[str, ...]:
    given, tls = found["coordinator"], shared.tls_of(found)
    addresses = listed(str(given.value))
    if not addresses:
        raise SettingsError(f"coordinator is empty (from {given.origin})")
    for address in addresses:
        try:
            check_secured(address, tls)
        except ValueError as error:
            raise SettingsError(f"coordinator: {error} (from {given.origin})") from None
    return addresses


def _logs(found: Found) -> dict[str, str]:
    logs: dict[str, str] = {}
    taken: dict[PurePath, str] = {}
    for given in listed(str(found["write"].value)):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A gateway's settings, and the origin of each value. logs: URIs by name."""

    coordinators: tuple[str, ...] = setting(
        "coordinator addresses, HOST:PORT, comma-separated",
        default="127.0.0.1:9200",
        name="coordinator",
        make=_coordinators,
    )
    host: str = setting("address to listen on", default="127.0.0.1")
    port: int = setting("port for Arrow Flight", default=9300, within=PORTS)
    health_port: int = setting("port for /health and /ready", default=9301, within=PORTS)
    logs: Mapping[str, str] = setting(
        "logs that accept records of clients: NAME=log:DIR/TOPIC, comma-separated; "
        "they have no other writer meanwhile",
        default="",
        name="write",
        make=_logs,
    )
    sql_timeout_s: int = setting(
        "time limit of a SQL query, in seconds", default=10, within=(1, 86_400)
    )
    sql_memory_mib: int = setting(
        "memory limit of a SQL query, in MiB", default=256, within=(1, 1 << 20)
    )
    end_with_stdin: bool = shared.end_with_stdin()
    token: Callable[[], str] = shared.token_file()
    roles: FileOfRoles | None = shared.roles()
    pages_without_tls: bool = shared.pages_without_tls()
    log: LogSettings = group(LogSettings)
    tls: Tls | None = shared.tls()
    origins: Found = shared.origins()

    @property
    def text(self) -> str:
        """The output of ``--check-config``: a valid configuration file, with origins."""
        return as_text(SETTINGS, self.origins, SECTION)


SETTINGS = settings_of(Settings)


def load(given: Arguments, environment: Mapping[str, str], file: Mapping[str, Any]) -> Settings:
    """Load the settings. Raises SettingsError."""
    found = in_force(SETTINGS, given, environment, file, section=SECTION, others=OTHERS)
    shared.check_ports(found, ("port", "health_port"))
    return made(Settings, found)

"""Settings that all processes of a cluster share, under our names and Ripple/OCaml's."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ripple.control.reread import Reread
from ripple.core.access import (
    TOKEN_CHARACTERS_MAX,
    Access,
    AccessError,
    Caller,
    Known,
    access_of,
    token_from,
)
from ripple.core.setting import Alias, Found, Setting, SettingsError, setting, taking
from ripple.world.addresses import check_secured, is_loopback, joined, parts
from ripple.world.errors import TlsError
from ripple.world.tls import Tls

PORT_MAX = 65_535
# The data ports of a worker's processes, from the first one on: ports between them are the worker's
# own, and its neighbours'.
PROCESS_PORTS_APART = 500


PORTS = (0, PORT_MAX)


def store(help_text: str) -> Any:
    """Return the field of the store of checkpoints and of the assignment."""
    return setting(
        help_text,
        make=_store_of,
        variables=(Alias("RIPPLE_CHECKPOINT_BUCKET", _bucket),),
        places=(Alias("cluster.checkpoint_store", _store),),
    )


def _store_of(found: Found) -> str:
    given = found["store"]
    place = str(given.value)
    if "@" in place.partition("://")[2].partition("/")[0]:  # not shown: it may contain a secret
        raise SettingsError(
            f"store (from {given.origin}) holds a user: give s3://bucket/prefix, and credentials "
            "by the AWS chain"
        )
    if "://" in place and not place.startswith("s3://"):
        raise SettingsError(
            f"store is {given.value} (from {given.origin}): it is a folder, or s3://bucket/prefix"
        )
    return place


_TLS = (
    Setting(name="tls_certificate", help="file with this process's certificate", default=""),
    Setting(name="tls_key", help="file with its private key", default=""),
    Setting(
        name="tls_authority",
        help="file with the CA certificate that peers must be signed by (ripple cert makes all "
        "three)",
        default="",
    ),
    Setting(
        name="insecure",
        help="connect without TLS although certificates are given; on this machine only",
        default=False,
    ),
)


def tls() -> Any:
    """Return the field of the certificates, which are read again when they are replaced."""
    return taking(_TLS, tls_of)


def roles() -> Any:
    """Return the field of the file of roles, which is read again when it changes."""
    return setting(
        "file of roles (tokens, certificates, rights), as described in docs/dashboard.md; "
        "without it, every authenticated peer may do everything",
        default="",
        make=_roles_of,
    )


def token_file() -> Any:
    """Return the field of a function that gives the token: its file is read again, if changed."""
    return setting(
        "file with the token for coordinators that have a file of roles",
        default="",
        name="token_file",
        make=_token_of,
    )


def pages_without_tls() -> Any:
    """Return the field of pages without TLS.

    Kubelets and Prometheus ask for them without a certificate.
    """
    return setting(
        "serve /health, /ready and /metrics without TLS to the network: needed if host is not "
        "this machine, since probes have no certificate; they show numbers, the plan, names of "
        "workers and partitions, and of records only causes of dead letters",
        default=False,
        make=_pages_of,
    )


def end_with_stdin() -> Any:
    """Return the field of whether the process ends with its parent."""
    return setting(
        "stop gracefully when the other end of standard input, a pipe, is closed: together "
        "with the parent process, however that ended",
        default=False,
    )


@dataclass(frozen=True, slots=True)
class LogSettings:
    """form: auto is text on a terminal and JSON elsewhere. level: the lowest that is logged."""

    form: str = setting(
        "log format: text, json, sexp (S-expressions), or auto: text on a terminal, json elsewhere",
        default="auto",
        name="log_format",
        choices=("auto", "text", "json", "sexp"),
        places=(Alias("cluster.log_format"),),
    )
    level: str = setting(
        "lowest level that is logged: debug, info, warn or error",
        default="info",
        name="log_level",
        choices=("debug", "info", "warn", "error"),
        places=(Alias("cluster.log_level"),),
    )


def origins() -> Any:
    """Return the field of all settings in force, with their origins."""
    return taking((), lambda found: found)


def check_lateness(file: Mapping[str, Any]) -> None:
    """Reject an allowed lateness in the file: it would change results. Raises SettingsError."""
    held: Any = file
    for part in ("cluster", "defaults", "allowed_lateness_sec"):
        held = held.get(part) if isinstance(held, Mapping) else None
    if held is not None:
        raise SettingsError(
            "the file has cluster.defaults.allowed_lateness_sec, which is no setting: how late an "
            "event may be is code, lateness of the pipeline's .window or out_of_order of its "
            ".source; take it out of the file"
        )


@contextmanager
def listening(name: str, found: Found) -> Iterator[None]:
    """Name the setting of a port that cannot be used. Raises SettingsError for any OSError.

    A certificate that does not fit keeps its own error: another port would not help.
    """
    try:
        yield
    except TlsError:
        raise
    except OSError as error:
        given = found[name]
        raise SettingsError(
            f"{name} is {given.value} (from {given.origin}), and that port is unavailable: "
            f"{error.strerror or error}. Give another one, as --{name.replace('_', '-')} or "
            f"RIPPLE_{name.upper()}"
        ) from error


def tls_of(found: Found) -> Tls | None:
    """Return the TLS settings. Without TLS, connections stay on this machine.

    Raises SettingsError.
    """
    files = {name: str(found[f"tls_{name}"].value) for name in ("certificate", "key", "authority")}
    absent = [f"tls_{name}" for name, path in files.items() if not path]
    if 0 < len(absent) < len(files):
        verb = "is" if len(absent) == 1 else "are"
        raise SettingsError(f"{' and '.join(absent)} {verb} missing: TLS needs all three files")
    tls = None if absent or found["insecure"].value else Tls(**files)
    host = found["host"]
    try:
        check_secured(joined(str(host.value), 0), tls)
    except ValueError:
        raise SettingsError(
            f"host is {host.value} (from {host.origin}), and without TLS the network "
            "could read and change messages: give tls_certificate, tls_key and tls_authority "
            "(ripple cert makes them) and no insecure, or listen on 127.0.0.1"
        ) from None
    return tls


def _roles_of(found: Found) -> FileOfRoles | None:
    given = found["roles"]
    return FileOfRoles(str(given.value), given.origin) if given.value else None


class FileOfRoles(Access):
    """Roles by their file, reread when it changes. warn: called if a changed file is invalid."""

    def __init__(self, path: str, origin: str) -> None:
        """Read the file. Raises SettingsError."""
        self._said = Reread(path, lambda path: _roles_in(path, origin))

    def known(self, caller: Caller) -> Known:
        """Return the identity of a peer, by the present file."""
        return self._said().known(caller)

    def of(self, given: bytes) -> Known:
        """Return the identity of a token, by the present file."""
        return self._said().of(given)

    def warn_with(self, warn: Callable[[str], None]) -> None:
        """Warn about a changed file that is invalid."""
        self._said.warn = warn


def _roles_in(path: str, origin: str) -> Access:
    try:
        status = os.stat(path)
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise SettingsError(f"roles: {path}: {error.strerror} (from {origin})") from None
    if status.st_mode & 0o007:
        raise SettingsError(
            f"roles: {path} can be read or changed by others on this machine, and holds tokens: "
            f"chmod o= {path} (from {origin})"
        )
    try:
        return access_of(data, path)
    except AccessError as error:
        raise SettingsError(f"roles: {error} (from {origin})") from None


def _token_of(found: Found) -> Callable[[], str]:
    path, origin = str(found["token_file"].value), found["token_file"].origin
    return Reread(path, lambda path: _token_in(path, origin)) if path else lambda: ""


def _token_in(path: str, origin: str) -> str:
    try:
        with open(path, "rb") as file:
            return token_from(file.read(TOKEN_CHARACTERS_MAX + 2))
    except OSError as error:
        raise SettingsError(f"token_file: {path}: {error.strerror} (from {origin})") from None
    except AccessError as error:
        raise SettingsError(f"token_file: {path} {error} (from {origin})") from None


def _pages_of(found: Found) -> bool:
    host, is_open = found["host"], bool(found["pages_without_tls"].value)
    if is_open or is_loopback(joined(str(host.value), 0)):
        return is_open
    raise SettingsError(
        f"host is {host.value} (from {host.origin}), and /health, /ready and /metrics "
        "have no TLS: set pages_without_tls, if the network may read them, or listen on 127.0.0.1"
    )


def check_ports(found: Found, names: Iterable[str]) -> None:
    """Reject ports that are used twice; 0 is any free one. Raises SettingsError."""
    taken: dict[Any, str] = {}
    for name in names:
        port, origin = found[name].value, found[name].origin
        if port and port in taken:
            raise SettingsError(f"{name} and {taken[port]} are both {port} (from {origin})")
        taken[port] = name


def listed(text: str) -> tuple[str, ...]:
    """Parse a comma-separated list."""
    return tuple(one.strip() for one in text.split(",") if one.strip())


def others(name: str, found: Found) -> tuple[str, ...]:
    """Parse the addresses of other processes, each named once. Raises SettingsError."""
    addresses, origin, tls = listed(str(found[name].value)), found[name].origin, tls_of(found)
    for address in addresses:
        try:
            check_secured(address, tls)
            if not parts(address)[1]:
                raise ValueError(f"{address} has port 0, which is no address")
        except ValueError as error:
            raise SettingsError(f"{name}: {error} (from {origin})") from error
    if len(set(addresses)) < len(addresses):
        raise SettingsError(f"{name} names one twice (from {origin})")
    return addresses


def _bucket(name: Any) -> str:
    """Read the name of a bucket as a store."""
    if not isinstance(name, str) or not name:
        raise ValueError("not the name of a bucket")
    return name if "://" in name else f"s3://{name}"


def _store(held: Any) -> str:
    """Read Ripple/OCaml's ``checkpoint_store``: a backend and its location."""
    if not isinstance(held, Mapping):
        raise ValueError("not a table with a backend")
    needed = {"s3": "bucket", "disk": "path", "local": "path"}.get(str(held.get("backend")).lower())
    if needed is None:
        raise ValueError("its backend is none of S3 and Disk")
    if not isinstance(held.get(needed), str):
        raise ValueError(f"it has no {needed}")
    unknown = [name for name in held if name not in ("backend", needed, "prefix")]
    if unknown:
        raise ValueError(f"it has {unknown[0]}, which is unknown")
    place = held[needed] if needed == "path" else f"s3://{held[needed]}"
    return f"{place}/{held['prefix']}" if held.get("prefix") else place

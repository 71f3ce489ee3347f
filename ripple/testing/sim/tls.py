"""Simulated certificates: names and their issuers, in files of a simulated disk."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ripple.world.errors import TlsError
from ripple.world.tls import Tls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ripple.testing.sim.disk import SimDisk

HOSTS = ("localhost", "127.0.0.1", "::1")


class Identity(NamedTuple):
    """A process's certificate, and the authorities that it trusts."""

    names: tuple[str, ...]
    authority: str
    trusted: tuple[str, ...]

    def misfit(self, shown: Identity, name: str = "") -> str:
        """Return why a peer's certificate is not accepted, "" if it is."""
        if shown.authority not in self.trusted:
            return f"unknown authority {shown.authority}"
        if name and name not in shown.names:
            return f"not for {name!r} but for {', '.join(map(repr, shown.names))}"
        return ""


class SimTls:
    """A listener's certificate: as the files are, or were when they last fitted together."""

    def __init__(self, disk: SimDisk, tls: Tls) -> None:
        self._disk = disk
        self._tls = tls
        self._identity = load(disk, tls)

    def identity(self) -> Identity:
        """Return the present identity."""
        with suppress(TlsError):
            self._identity = load(self._disk, self._tls)
        return self._identity


def issue(disk: SimDisk, name: str, *, hosts: Sequence[str] = HOSTS, authority: str = "ca") -> Tls:
    """Put a certificate for ``name`` and ``hosts``, its key and its authority's on a disk."""
    folder = f"{authority}-{name}"
    text = f"{','.join([name, *hosts])} by {authority}"
    tls = Tls(
        certificate=f"{folder}/{name}.crt",
        key=f"{folder}/{name}.key",
        authority=f"{folder}/ca.crt",
    )
    disk.install(
        {
            tls.certificate: f"certificate {text}".encode(),
            tls.key: f"key {text}".encode(),
            tls.authority: f"authority {authority}".encode(),
        }
    )
    return tls


def load(disk: SimDisk, tls: Tls) -> Identity:
    """Read a process's identity. Raises TlsError."""
    text = _content(disk, tls.certificate, "certificate ")
    if _content(disk, tls.key, "key ") != text:
        raise TlsError(tls.key, f"is not the private key of {tls.certificate}")
    names, _, authority = text.partition(" by ")
    trusted = _content(disk, tls.authority, "authority ")
    return Identity(tuple(names.split(",")), authority, tuple(trusted.split(",")))


def _content(disk: SimDisk, path: str, kind: str) -> str:
    data = disk.contents(path)
    if data is None:
        raise TlsError(path, "cannot be read: No such file or directory")
    text = data.decode(errors="replace")
    if not text.startswith(kind):
        raise TlsError(path, f"holds no {kind.strip()}")
    return text.removeprefix(kind)

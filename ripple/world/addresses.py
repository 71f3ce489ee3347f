"""Addresses, ``host:port``, and whether they are on this machine."""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ripple.world.tls import Tls


def parts(address: str) -> tuple[str, int]:
    """Return host and port; IPv6 hosts stand in brackets. Raises ValueError."""
    given, _, port = address.rpartition(":")
    host = given.removeprefix("[").removesuffix("]")
    if not (host and port.isascii() and port.isdigit() and int(port) < 1 << 16):
        raise ValueError(f"{address!r} is no address: host:port")
    return host, int(port)


def joined(host: str, port: int) -> str:
    """Return the address of a host and a port."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_loopback(address: str) -> bool:
    """Return whether an address is on this machine, by its text alone.

    Of names only ``localhost`` is trusted: others depend on a name server.
    """
    host, _ = parts(address)
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_secured(address: str, tls: Tls | None, *, insecure: bool = False) -> None:
    """Refuse unencrypted connections beyond this machine, unless ``insecure``.

    For listeners and clients alike. Raises ValueError.
    """
    if tls is None and not insecure and not is_loopback(address):
        raise ValueError(
            f"{address} is not on this machine, and without TLS others can read and change "
            "its bytes: give a certificate (`ripple cert` makes some), or an address of "
            "this machine"
        )

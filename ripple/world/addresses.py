"""Addresses, ``host:port``, and whether what is sent there leaves the machine."""

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
    """Return whether what is sent there stays on this machine, by the address alone.

    Of names only ``localhost`` is believed: others are looked up by whoever answers.
    """
    host, _ = parts(address)
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_secured(address: str, tls: Tls | None, *, insecure: bool = False) -> None:
    """Refuse plain bytes that would leave this machine, unless somebody has said ``insecure``.

    For whoever listens as for whoever connects. Raises ValueError.
    """
    if tls is None and not insecure and not is_loopback(address):
        raise ValueError(
            f"{address} is not on this machine, and without TLS everybody on the way can read and "
            "change what is sent: give a certificate (`ripple cert` makes some), or an address of "
            "this machine"
        )

"""A process's certificate, and the authorities that it trusts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """Paths of files in PEM form, read when they are needed: they may be replaced at any time.

    Both sides show a certificate and ask for one; only TLS 1.3 is spoken.

    Args:
        certificate: this process's, followed by those between it and its authority, if any.
        key: its private key, without a passphrase.
        authority: the CA certificates that are trusted.
        peer: the name that the listener's certificate must have; "": the host of the address.

    """

    certificate: str
    key: str
    authority: str
    peer: str = ""

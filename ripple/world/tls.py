"""Who a process is for others, and whom it believes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """Paths of files in PEM form, read when they are needed: they may be replaced at any time.

    Both sides show a certificate and ask for one; only TLS 1.3 is spoken.

    Args:
        certificate: this process's, followed by those between it and its authority, if any.
        key: its private key, without a passphrase.
        authority: of those whose certificates are believed.
        peer: the name for which the certificate of who listens must be; "": the host of the
            address that is connected to.

    """

    certificate: str
    key: str
    authority: str
    peer: str = ""

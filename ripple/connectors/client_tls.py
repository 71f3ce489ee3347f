"""TLS of clients of other systems: CA certificates, client certificates and keys."""

from __future__ import annotations

import ssl

from ripple.core.errors import InputError


def client_context(
    variables: str, authority: str | None, certificate: str | None = None, key: str | None = None
) -> ssl.SSLContext:
    """Return a context that asks for a certificate which is valid for the server's name.

    variables: the prefix of those with the files' names, as in ``NATS_CA``, ``NATS_CERT`` and
    ``NATS_KEY``. Raises InputError, which names the file and its variable.
    """
    named = f"{variables}CA, {authority}"
    try:
        context = ssl.create_default_context(cafile=authority or None)
        if certificate:
            named = f"{variables}CERT and {variables}KEY, {certificate} and {key or 'no key'}"
            context.load_cert_chain(certificate, key or None)
    except OSError as error:
        raise InputError(f"cannot read {named}: {error.strerror or error}") from error
    if key and not certificate:
        raise InputError(f"{variables}KEY is the key of no certificate: set {variables}CERT, too")
    return context

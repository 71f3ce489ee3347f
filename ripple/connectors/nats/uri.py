"""URIs of streams, as users write them: ``nats:STREAM`` or ``nats://HOST:PORT/STREAM``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from ripple.connectors.server_uri import parsed_name, settings_of, with_port
from ripple.connectors.settings import setting
from ripple.core.errors import InputError
from ripple.world.addresses import is_loopback

PREFIX = "nats:"
SUBJECT, LIFTBRIDGE = "nats-subject:", "liftbridge:"
PORT = 4222
HERE = f"127.0.0.1:{PORT}"

_WORD = r"[^\s.*>/@]+"
_NAMED = rf"{_WORD}(\.{_WORD})*"
_LISTENED = rf"({_WORD}|\*)(\.({_WORD}|\*))*(\.>)?|>"
_KINDS = {
    prefix: (what, re.compile(rf"(?=[^/]{{1,200}}$)({pattern})"))
    for prefix, what, pattern in (
        (PREFIX, "stream", "[A-Za-z0-9_-]+"),
        (SUBJECT, "subject", _LISTENED),
        (LIFTBRIDGE, "subject", _NAMED),
    )
}


@dataclass(frozen=True)
class Settings:
    """The settings of the environment, of which nothing is ever part of a URI."""

    server: str | None = setting(
        "HOST:PORT, unless the URI names it", variable="NATS_SERVER", default=None
    )
    user: str | None = setting("user name", variable="NATS_USER", default=None)
    password: str | None = setting(
        "of the user", variable="NATS_PASSWORD", default=None, secret=True
    )
    token: str | None = setting(
        "instead of a user", variable="NATS_TOKEN", default=None, secret=True
    )
    credentials: str | None = setting("a file of credentials", variable="NATS_CREDS", default=None)
    nkey: str | None = setting("a file with a seed", variable="NATS_NKEY", default=None)
    authority: str | None = setting("CA certificates (a file)", variable="NATS_CA", default=None)
    certificate: str | None = setting("a file: our own", variable="NATS_CERT", default=None)
    key: str | None = setting("a file: its key", variable="NATS_KEY", default=None)
    quiet_s: int | None = setting(
        "a subject ends after so many seconds without a message; never by default",
        variable="NATS_QUIET_S",
        default=None,
    )
    tls: bool | None = setting(
        "by default if not on this machine", variable="NATS_TLS", default=None
    )


class NatsUri(NamedTuple):
    """A stream or a subject (``stream``), and where its server is."""

    server: str
    stream: str
    settings: Settings

    prefix: str = PREFIX

    @classmethod
    def parse(cls, path: str, prefix: str = PREFIX) -> NatsUri:
        """Parse the text after the scheme, ``prefix``. Raises InputError."""
        what, pattern = _KINDS[prefix]
        if "@" in path:
            raise InputError(
                f"a {prefix} URI has no user and no password, which others could read there: set "
                "NATS_CREDS, NATS_NKEY, NATS_TOKEN, or NATS_USER and NATS_PASSWORD"
            )
        wrong = InputError(
            f"cannot tell which {what} {prefix}{path} is: it must be "
            f"{prefix}[//HOST[:PORT]/]{what.upper()}"
        )
        server, name = parsed_name(path, pattern, wrong)
        settings = settings_of("nats", Settings)
        return cls(with_port(server or settings.server or HERE, PORT), name, settings, prefix)

    @property
    def is_secure(self) -> bool:
        """Whether the connection must be by TLS: a server elsewhere shows a certificate."""
        tls = self.settings.tls
        return not is_loopback(self.server) if tls is None else tls

    def __str__(self) -> str:
        """Return the place, with its server."""
        return f"{self.prefix}//{self.server}/{self.stream}"

"""URIs of streams, as users write them: ``redis:STREAM`` or ``redis://HOST:PORT/STREAM``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import quote_from_bytes, unquote_to_bytes

from ripple.connectors.server_uri import parsed_name, settings_of, with_port
from ripple.connectors.settings import setting
from ripple.core.errors import InputError
from ripple.world.addresses import is_loopback

PREFIX = "redis:"
FORM = "redis:[//HOST[:PORT]/]STREAM"
PORT = 6379
HERE = f"127.0.0.1:{PORT}"

_STREAM = re.compile(r"([^\s/?#%]|%[0-9A-Fa-f]{2}){1,600}")


@dataclass(frozen=True)
class Settings:
    """The settings of the environment, of which nothing is ever part of a URI."""

    server: str | None = setting(
        "HOST:PORT, unless the URI names it", variable="REDIS_SERVER", default=None
    )
    database: int = setting("which of the server's", variable="REDIS_DATABASE", default=0)
    user: str | None = setting("user name", variable="REDIS_USER", default=None)
    password: str | None = setting(
        "of the user", variable="REDIS_PASSWORD", default=None, secret=True
    )
    authority: str | None = setting("CA certificates (a file)", variable="REDIS_CA", default=None)
    certificate: str | None = setting("a file: our own", variable="REDIS_CERT", default=None)
    key: str | None = setting("a file: its key", variable="REDIS_KEY", default=None)
    tls: bool | None = setting(
        "by default if not on this machine", variable="REDIS_TLS", default=None
    )


class RedisUri(NamedTuple):
    """A stream, as it is written in a place, and where its server is."""

    server: str
    stream: str
    settings: Settings

    @classmethod
    def parse(cls, path: str) -> RedisUri:
        """Parse the text after the scheme. Raises InputError."""
        if "@" in path:
            raise InputError(
                "a redis: URI has no user and no password, which others could read there: set "
                "REDIS_USER and REDIS_PASSWORD"
            )
        wrong = InputError(
            f"cannot tell which stream {PREFIX}{path} is: it must be {FORM}, in whose name "
            "others than letters, digits and -_.:{} are written as %2F for /, %20 for a space"
        )
        server, name = parsed_name(path, _STREAM, wrong)
        settings = settings_of("redis", Settings)
        return cls(with_port(server or settings.server or HERE, PORT), name, settings)

    @classmethod
    def written(cls, server: str, key: bytes) -> str:
        """Return the place of a stream of a server."""
        return f"{PREFIX}//{server}/{quote_from_bytes(key, safe=':{}')}"

    @property
    def key(self) -> bytes:
        """The stream's name in its server."""
        return unquote_to_bytes(self.stream)

    @property
    def is_secure(self) -> bool:
        """Whether the connection must be by TLS: a server elsewhere shows a certificate."""
        tls = self.settings.tls
        return not is_loopback(self.server) if tls is None else tls

    def __str__(self) -> str:
        """Return the place, with its server."""
        return f"{PREFIX}//{self.server}/{self.stream}"

"""URIs that may name a server: ``//[USER@]HOST[:PORT]/NAME``, or ``NAME`` alone."""

from __future__ import annotations

import os
import re
from typing import NamedTuple, TypeVar

from ripple.connectors.settings import settings_from
from ripple.core.errors import ConnectorError, InputError

S = TypeVar("S")

_SERVER = re.compile(
    r"//((?P<user>[^@/:]+)@)?(?P<host>\[[0-9A-Fa-f:.]+\]|[^@/:\[\]]*)(:(?P<port>[0-9]{1,5}))?"
    r"(/(?P<name>.*))?"
)


class ServerUri(NamedTuple):
    """The parts of the text after a scheme, "" for absent ones.

    host: an IPv6 address in brackets. name: the text after the server and its slash.
    """

    user: str
    host: str
    port: str
    name: str

    @classmethod
    def parse(cls, path: str) -> ServerUri | None:
        """Parse the text after the scheme; None if it has another form."""
        if not path.startswith("//"):
            return cls("", "", "", path)
        found = _SERVER.fullmatch(path)
        return None if found is None else cls(**found.groupdict(default=""))


def parsed_name(path: str, name: re.Pattern[str], error: Exception) -> tuple[str, str]:
    """Return the server, "" for none, and the name of ``[//HOST[:PORT]/]NAME``, else raise."""
    found = ServerUri.parse(path)
    if (
        found is None
        or found.user
        or not (found.host or found.name == path)
        or not name.fullmatch(found.name)
    ):
        raise error
    return f"{found.host}:{found.port}" if found.port else found.host, found.name


def with_port(server: str, port: int) -> str:
    """Return ``HOST:PORT`` of a server that may have no port."""
    return server if re.search(r":[0-9]+$", server) else f"{server}:{port}"


def settings_of(scheme: str, settings: type[S]) -> S:
    """Return the settings of the environment. Raises InputError."""
    try:
        return settings_from(scheme, settings, os.environ)
    except ConnectorError as error:
        raise InputError(str(error)) from error

"""URIs of feeds, as users write them: ``ws://HOST/PATH`` and ``wss://HOST/PATH``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ripple.connectors.server_uri import ServerUri, settings_of
from ripple.connectors.settings import setting
from ripple.core.errors import InputError
from ripple.world.addresses import is_loopback, joined

FORM = "wss://HOST[:PORT]/PATH"
LAST = "{sequence}"


@dataclass(frozen=True)
class Settings:
    """The subscription of a feed, and the way in which its messages are read."""

    subscribe: str | None = setting(
        "message that is sent once connected", variable="WS_SUBSCRIBE", default=None
    )
    resume: str | None = setting(
        f"the same after a lost connection, {LAST} for the last number",
        variable="WS_RESUME",
        default=None,
    )
    sequence: str | None = setting(
        "member that numbers messages one by one", variable="WS_SEQUENCE", default=None
    )
    only: str | None = setting(
        "MEMBER=TEXT: other messages are no records", variable="WS_ONLY", default=None
    )
    authorization: str | None = setting(
        "header of that name", variable="WS_AUTHORIZATION", default=None, secret=True
    )
    authority: str | None = setting(
        "CA certificates (a file), instead of the system's",
        variable="WS_CA",
        default=None,
    )


class Feed(NamedTuple):
    """A feed; ``url`` is its place."""

    url: str
    settings: Settings

    @classmethod
    def parse(cls, scheme: str, path: str) -> Feed:
        """Parse the text after the scheme. Raises InputError."""
        found = ServerUri.parse(path)
        if found is None or found.user or not found.host:
            raise InputError(
                f"cannot tell which feed {scheme}:{path.rpartition('@')[2]} is: it must be {FORM}, "
                "without a user or a password, which others could read there"
            )
        settings = settings_of(scheme, Settings)
        if settings.authorization and scheme == "ws" and not is_loopback(joined(found.host, 0)):
            raise InputError(f"WS_AUTHORIZATION is sent by TLS alone: {FORM}")
        if settings.resume and not (settings.sequence and LAST in settings.resume):
            raise InputError(f"WS_RESUME needs {LAST} in it, and WS_SEQUENCE")
        if settings.only is not None and "=" not in settings.only:
            raise InputError(f"WS_ONLY is {settings.only!r}, not MEMBER=TEXT")
        return cls(f"{scheme}:{path}", settings)

    def greeting(self, last: int | None) -> str | None:
        """Return the first message to send; last: the number of the last message, if known."""
        if last is not None and self.settings.resume:
            return self.settings.resume.replace(LAST, str(last))
        return self.settings.subscribe

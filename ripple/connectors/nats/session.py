"""A connection to a NATS server, and requests about a stream."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ripple.connectors.client_tls import client_context
from ripple.connectors.library_errors import said
from ripple.core.errors import InputError, RippleError
from ripple.core.extras import needed
from ripple.world.addresses import is_loopback, parts

with needed("nats", "a stream of NATS"):
    import nkeys
    from nats.aio.client import Client
    from nats.errors import Error as NatsError
    from nats.errors import NoServersError
    from nats.js.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable

    from nats.js import JetStreamContext
    from nats.js.api import StreamInfo

    from ripple.connectors.nats.uri import NatsUri

CONNECT_S = 5.0
ANSWER_S = 8.0
ASK_S = 5.0
LEAVE_S = 2.0
FAILURES = (NatsError, OSError, asyncio.TimeoutError)


class _Client(Client):
    """A client that enforces the required security, regardless of a server's announcements.

    A server's announcement is in clear text, so an attacker in between may hide its TLS, or name
    other servers. Both are checked before credentials are sent: over TLS a server that was named
    in clear text must show a certificate for the configured name.
    """

    place: NatsUri
    heard: list[Exception]
    """The last that a server has said went wrong."""

    async def _process_info(self, info: dict[str, Any], initial_connection: bool = False) -> None:
        if self.place.is_secure:
            if initial_connection and not (info.get("tls_required") or info.get("tls_available")):
                raise NatsError(
                    "the server offers no TLS, without which no credentials are sent: enable it, "
                    "or set NATS_TLS=false where all may read along"
                )
            info["tls_required"] = True
        elif self.place.settings.tls is None:
            others = info.get("connect_urls") or []
            info["connect_urls"] = [one for one in others if _is_here(one)]
        await super()._process_info(info, initial_connection)
        if self.place.is_secure and initial_connection:
            named, _ = parts(self.place.server)
            for server in self._server_pool:
                if server.discovered:
                    server.tls_name = named


async def connected(
    place: NatsUri, failure: type[RippleError], hear: Callable[[Exception], None] | None = None
) -> Client:
    """Return a connection that reconnects by itself; raises ``failure`` without an answer.

    hear: called with later errors.
    """
    heard: list[Exception] = []

    async def hear_of(error: Exception) -> None:
        if hear is not None:
            hear(error)
        # The cause of a failed connection: the first error; later ones follow from it.
        if not (heard and isinstance(error, ConnectionError)):
            heard[:] = [error]

    try:
        options = _options(place)
        client = _Client()
        client.place, client.heard = place, heard
        # The client tries for ever where certificates do not fit.
        async with asyncio.timeout(ANSWER_S):
            await client.connect(f"nats://{place.server}", error_cb=hear_of, **options)
    except (NoServersError, TimeoutError) as error:
        why = heard[0] if heard else error  # the server may have answered with a reason
        raise error_of(place, why, failure) from why
    except (*FAILURES, ValueError, RuntimeError) as error:
        raise error_of(place, error, failure) from error
    except InputError as error:  # of files
        raise failure(f"{place}: {error}") from error
    except nkeys.NkeysError as error:
        wrong = ValueError(f"the file of NATS_NKEY or NATS_CREDS holds no seed: {error}")
        raise error_of(place, wrong, failure) from error
    return client


async def left(client: Client | None, error: BaseException) -> BaseException:
    """Close the connection to an unresponsive server, for a new one; return the reason.

    A connection with revoked rights gets no answers any more, even once they are granted again: its
    inbox is gone. A silent interruption is noticed in minutes. Other errors keep the connection.
    """
    if not isinstance(client, _Client) or not isinstance(error, TimeoutError):
        return error
    denied = [one for one in client.heard if "permissions violation" in str(one).lower()]
    with suppress(*FAILURES):
        async with asyncio.timeout(LEAVE_S):
            await client.close()
    return denied[0] if denied else error


async def stream_info(js: JetStreamContext, place: NatsUri) -> StreamInfo | None:
    """Return the stream's information, None if there is no stream."""
    try:
        return await js.stream_info(place.stream)
    except NotFoundError:
        return None


def error_of(place: NatsUri, error: BaseException, failure: type[RippleError]) -> RippleError:
    """Return an error in one line, which names the place; one of ours as it is."""
    if isinstance(error, RippleError):
        return error
    unsaid = isinstance(error, TimeoutError) and not str(error)
    why = said(error, "no answer in time: is it a server of NATS?" if unsaid else None)
    return failure(f"{place}: {why}")


def _is_here(address: str) -> bool:
    try:
        return is_loopback(address)
    except ValueError:
        return False


def _options(place: NatsUri) -> dict[str, Any]:
    given = place.settings
    options: dict[str, Any] = {
        "user": given.user,
        "password": given.password,
        "token": given.token,
        "user_credentials": given.credentials,
        "nkeys_seed": given.nkey,
    }
    options = {name: value for name, value in options.items() if value is not None}
    if place.is_secure:
        options["tls"] = client_context("NATS_", given.authority, given.certificate, given.key)
    return options | {
        "name": "ripple",
        "connect_timeout": CONNECT_S,
        "allow_reconnect": True,
        "max_reconnect_attempts": 3,
        "reconnect_time_wait": 0.5,
    }

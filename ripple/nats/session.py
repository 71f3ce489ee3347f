"""A connection to a server of NATS, and what is asked of a stream."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, Any

from ripple.errors import RippleError
from ripple.extras import needed

with needed("nats", "a stream of NATS"):
    import nats
    from nats.errors import Error as NatsError
    from nats.errors import NoServersError
    from nats.js.errors import NotFoundError

if TYPE_CHECKING:
    from collections.abc import Callable

    from nats.aio.client import Client
    from nats.js import JetStreamContext
    from nats.js.api import StreamInfo

    from ripple.nats.place import NatsPlace

CONNECT_S = 5.0
ANSWER_S = 8.0
ASK_S = 5.0
FAILURES = (NatsError, OSError, asyncio.TimeoutError)


async def connected(
    place: NatsPlace, failure: type[RippleError], hear: Callable[[Exception], None] | None = None
) -> Client:
    """Return a connection that reconnects by itself; raises ``failure`` where nobody answers.

    hear: is told what goes wrong afterwards.
    """
    said: list[Exception] = []

    async def heard(error: Exception) -> None:
        if hear is not None:
            hear(error)
        # Why there is no connection: that it is broken follows from what was said before.
        if not (said and isinstance(error, ConnectionError)):
            said[:] = [error]

    try:
        options = _options(place)
        server = f"nats://{place.server}"
        # The client tries for ever where certificates do not fit.
        async with asyncio.timeout(ANSWER_S):
            client: Client = await nats.connect(server, error_cb=heard, **options)
    except (NoServersError, TimeoutError) as error:
        raise told(place, said[0] if said else error, failure) from error
    except (*FAILURES, ValueError, RuntimeError) as error:
        raise told(place, error, failure) from error
    return client


async def stream_info(js: JetStreamContext, place: NatsPlace) -> StreamInfo | None:
    """Return what is known of the stream, None if there is none."""
    try:
        return await js.stream_info(place.stream)
    except NotFoundError:
        return None


def told(place: NatsPlace, error: BaseException, failure: type[RippleError]) -> RippleError:
    """Return an error in one line, which names the place."""
    said = " ".join(str(error).split()) or type(error).__name__
    return failure(f"{place}: {said}")


def _options(place: NatsPlace) -> dict[str, Any]:
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
        try:
            context = ssl.create_default_context(cafile=given.authority)
            if given.certificate:
                context.load_cert_chain(given.certificate, given.key)
        except OSError as error:
            raise ValueError(f"the files of NATS_CA, NATS_CERT and NATS_KEY: {error}") from error
        options["tls"] = context
    return options | {
        "name": "ripple",
        "connect_timeout": CONNECT_S,
        "allow_reconnect": True,
        "max_reconnect_attempts": 3,
        "reconnect_time_wait": 0.5,
    }

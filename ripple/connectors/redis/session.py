"""A connection to a server of Redis."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ripple.connectors.client_tls import client_context
from ripple.connectors.library_errors import said
from ripple.core.errors import InputAwayError, InputError
from ripple.core.extras import needed
from ripple.world.addresses import parts

with needed("redis", "a stream of Redis"):
    from redis.asyncio import Redis
    from redis.asyncio.retry import Retry
    from redis.backoff import NoBackoff
    from redis.exceptions import (
        AuthenticationError,
        InvalidResponse,
        RedisError,
        ResponseError,
    )
    from redis.exceptions import (
        ConnectionError as Unconnected,
    )
    from redis.exceptions import (
        TimeoutError as Unanswered,
    )

if TYPE_CHECKING:
    from ripple.connectors.redis.uri import RedisUri

CONNECT_S = 5.0
ANSWER_S = 8.0
_LOST = (Unconnected, Unanswered)
FAILURES = (RedisError, OSError, asyncio.TimeoutError)


def client_of(place: RedisUri) -> Redis:
    """Return a client, which connects when it is asked for something. Raises InputError."""
    host, port = parts(place.server)
    given = place.settings
    options: dict[str, Any] = {}
    if place.is_secure:
        # The library's own errors name neither the file nor its variable.
        client_context("REDIS_", given.authority, given.certificate, given.key)
        options = {
            "ssl": True,
            "ssl_ca_certs": given.authority,
            "ssl_certfile": given.certificate,
            "ssl_keyfile": given.key,
        }
    return Redis(
        host=host,
        port=port,
        db=given.database,
        username=given.user,
        password=given.password,
        socket_connect_timeout=CONNECT_S,
        socket_timeout=ANSWER_S,
        client_name="ripple",
        protocol=2,  # with meaningful errors
        retry=Retry(NoBackoff(), 0),  # the caller knows for how long to retry
        **options,
    )


def error_of(place: RedisUri, error: BaseException) -> InputError:
    """Return an error in one line, which names the place."""
    if isinstance(error, InputError):
        return error
    if isinstance(error, ResponseError) and "WRONGTYPE" in str(error):
        return InputError(f"{place}: there is something else of that name, which is no stream")
    if isinstance(error, InvalidResponse):
        return InputAwayError(f"{place}: the server there does not speak the protocol of Redis")
    hint = ""
    if isinstance(error, AuthenticationError):
        hint = ": set REDIS_USER and REDIS_PASSWORD"
    # By name, as this module must not import sockets.
    absent = type(error.__context__).__name__ in ("gaierror", "ConnectionRefusedError")
    if isinstance(error, _LOST) and not isinstance(error, AuthenticationError) and not absent:
        hint = ": does it speak TLS (REDIS_TLS)?" if place.is_secure else ""
    return InputAwayError(f"{place}: {said(error).rstrip('.')}{hint}")

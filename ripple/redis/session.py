"""A connection to a server of Redis."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from ripple.errors import InputError
from ripple.extras import needed
from ripple.world.addresses import parts

with needed("redis", "a stream of Redis"):
    from redis.asyncio import Redis
    from redis.exceptions import RedisError

if TYPE_CHECKING:
    from ripple.redis.place import RedisPlace

CONNECT_S = 5.0
ANSWER_S = 8.0
FAILURES = (RedisError, OSError, asyncio.TimeoutError)


def client_of(place: RedisPlace) -> Redis:
    """Return a client, which connects when it is asked for something. Raises InputError."""
    host, port = parts(place.server)
    given = place.settings
    options: dict[str, Any] = {}
    if place.is_secure:
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
        protocol=2,  # whose errors say what is wrong
        **options,
    )


def told(place: RedisPlace, error: BaseException) -> InputError:
    """Return an error in one line, which names the place."""
    if isinstance(error, InputError):
        return error
    return InputError(f"{place}: {' '.join(str(error).split()) or type(error).__name__}")

"""Opens streams of Redis, for the connector."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from ripple.connectors.background import Background
from ripple.connectors.redis.inputs import RedisInputs
from ripple.connectors.redis.page import NOTHING, page_of
from ripple.connectors.redis.session import FAILURES, client_of, error_of
from ripple.connectors.redis.uri import RedisUri
from ripple.connectors.settings import Stream

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from redis.asyncio import Redis

    from ripple.connectors.connector import Reading
    from ripple.connectors.redis.page import Page

T = TypeVar("T")
STREAMS_MAX = 1000


def open_inputs(path: str, reading: Reading) -> RedisInputs:
    """Return the stream; raises InputError."""
    return RedisInputs(RedisUri.parse(path), reading)


def check(path: str) -> str:
    """Connect, and describe the stream; raises InputError."""
    place = RedisUri.parse(path)

    async def asked(client: Redis) -> Page | None:
        return await page_of(client, place, NOTHING, 1)

    page = _asked(place, asked)
    if page is None:
        return f"a server of Redis answers at {place.server}; there is no stream {place.stream} yet"
    return f"a stream of {page.end - page.first} entries, from {page.first} to {page.end}"


def identity(path: str) -> str:
    """Return a stream's identity."""
    return str(RedisUri.parse(path))


def discover(path: str) -> list[Stream]:
    """Return the streams of a server, not all of many; raises InputError."""
    place = RedisUri.parse(path)

    async def asked(client: Redis) -> list[bytes]:
        found: list[bytes] = []
        async for name in client.scan_iter(count=1000, _type="stream"):
            found.append(name)
            if len(found) == STREAMS_MAX:
                break
        return sorted(found)

    return [
        Stream(RedisUri.written(place.server, name), replayable=True)
        for name in _asked(place, asked)
    ]


def _asked(place: RedisUri, what: Callable[[Redis], Awaitable[T]]) -> T:
    async def asked() -> T:
        client = client_of(place)
        try:
            return await what(client)
        except FAILURES as error:
            raise error_of(place, error) from error
        finally:
            await client.aclose()

    with Background() as loop:
        return loop.call(asked())

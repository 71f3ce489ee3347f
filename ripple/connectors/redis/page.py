"""Pages of a stream: its next entries, and their offsets.

Redis names entries by time, and counts them only at the stream's end. So offsets follow from two
numbers of one transaction: entries added, and entries present. That is right as long as entries
are removed from the stream's beginning alone, as ``MAXLEN`` and ``MINID`` do; after a deletion in
the middle offsets are unknown, and the stream is rejected.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ripple.core.errors import InputError
from ripple.core.extras import needed

with needed("redis", "a stream of Redis"):
    from redis.exceptions import ResponseError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from redis.asyncio import Redis

    from ripple.connectors.redis.uri import RedisUri

NOTHING = b"0-0"


class Entry(NamedTuple):
    """One entry, as the server has it."""

    id: bytes
    fields: Mapping[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Page:
    """A stream at one moment.

    first, end: the offsets of its beginning and end. entries: those after the requested one, the
    oldest first, up to a limit. is_named_there: whether that one is there; it may be trimmed.
    last: the last id that was assigned.
    """

    first: int
    end: int
    entries: list[Entry]
    is_named_there: bool
    last: bytes


async def page_of(client: Redis, place: RedisUri, after: bytes, count: int) -> Page | None:
    """Return the entries after an id; None if there is no such stream.

    Raises InputError for a stream with deletions in its middle, and the client's errors.
    """
    async with client.pipeline(transaction=True) as asked:
        asked.xinfo_stream(place.key)
        asked.xrange(place.key, b"(" + after, b"+", count)
        asked.xrange(place.key, after, after)
        try:
            said, entries, named = await asked.execute()
        except ResponseError as error:
            if "no such key" in str(error):
                return None
            raise
    first, end = _range(said, place)
    found = [Entry(*one) for one in entries]
    return Page(first, end, found, bool(named), _id(said["last-generated-id"]))


def _range(said: Mapping[str, Any], place: RedisUri) -> tuple[int, int]:
    if "entries-added" not in said:
        raise InputError(
            f"{place}: its server does not say how many entries were added to it: Redis does from "
            "7.0 on"
        )
    first = said["first-entry"]
    if first and _order(_id(said["max-deleted-entry-id"])) > _order(_id(first[0])):
        raise InputError(
            f"{place}: entries were deleted out of its middle (XDEL), so offsets are "
            "unknown: remove entries with XTRIM, or by MAXLEN or MINID of XADD"
        )
    end = int(said["entries-added"])
    return end - int(said["length"]), end


def _id(given: bytes | str) -> bytes:
    return given.encode() if isinstance(given, str) else given


def _order(id_: bytes) -> tuple[int, int]:
    milliseconds, _, number = id_.partition(b"-")
    return int(milliseconds), int(number)

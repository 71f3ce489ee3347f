"""Counts of the requests to an object store: the base of a cloud's charges."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ripple.world.ports import ObjectStore

KINDS = ("put", "get", "list", "delete")
NAMES_A_PAGE = 1000
"""The most names that a store returns to one request."""


class CountedStore:
    """A store with counts of its requests by kind, failed ones included, and of bytes put and got.

    It stands below retries, which repeat requests, and below a cache, which saves some.
    """

    def __init__(self, store: ObjectStore) -> None:
        """Count the requests to ``store``."""
        self._store = store
        self.requests: Counter[str] = Counter(dict.fromkeys(KINDS, 0))
        """By kind."""
        self.length_bytes: Counter[str] = Counter({"put": 0, "get": 0})
        """Sent and received."""

    async def put_if_absent(self, name: str, data: bytes) -> bool:
        """Store an object unless the name is taken; return whether this call stored it."""
        self.requests["put"] += 1
        self.length_bytes["put"] += len(data)
        return await self._store.put_if_absent(name, data)

    async def get(self, name: str, *, length_max: int) -> bytes | None:
        """Return an object, None if there is none."""
        self.requests["get"] += 1
        data = await self._store.get(name, length_max=length_max)
        self.length_bytes["get"] += 0 if data is None else len(data)
        return data

    async def list(self, prefix: str) -> list[str]:
        """Return the names that start with ``prefix``, sorted: a request for each page."""
        self.requests["list"] += 1
        names = await self._store.list(prefix)
        self.requests["list"] += len(names) // NAMES_A_PAGE
        return names

    async def delete(self, name: str) -> None:
        """Forget an object."""
        self.requests["delete"] += 1
        await self._store.delete(name)

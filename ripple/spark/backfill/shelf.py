"""The intermediate storage of a backfill, in the store of its checkpoints."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ripple.storage.checkpoint.origin import folder_of
from ripple.storage.fenced import DamagedError, object_in
from ripple.storage.store import RetryingStore
from ripple.storage.store.opening import open_store
from ripple.world import LiveClock, LiveRandom

if TYPE_CHECKING:
    from ripple.world.ports import ObjectStore

_BYTES_MAX = 256 << 20


@dataclass(frozen=True, slots=True)
class Shelf:
    """A folder of a store, which no owner of a partition sweeps.

    store: a folder, or ``s3://bucket/prefix`` with settings in the environment. backfill: its
    fingerprint, so that each has its own shelf.
    """

    store: str
    pipeline: str
    backfill: str

    @property
    def folder(self) -> str:
        """The prefix of its objects' names."""
        return f"{folder_of(self.pipeline)}backfill/{self.backfill}/"

    @asynccontextmanager
    async def opened(self, *, is_probed: bool = False) -> AsyncIterator[ObjectStore]:
        """Open the store. is_probed: first verify that it rejects a second put."""
        async with open_store(self.store, is_probed=is_probed) as store:
            yield RetryingStore(store, LiveClock(), LiveRandom())

    async def put(self, name: str, value: Mapping[str, Any]) -> None:
        """Store a value, unless it is there: each name has one value."""
        data = json.dumps(value, sort_keys=True).encode()
        async with self.opened() as store:
            await store.put_if_absent(f"{self.folder}{name}", data)

    async def put_files(self, files: Mapping[str, bytes | bytearray]) -> None:
        """Store files by their full names."""
        async with self.opened() as store:
            for name, data in files.items():
                await store.put_if_absent(name, bytes(data))

    async def all(self, prefix: str) -> list[dict[str, Any]]:
        """Return the values whose names start with a prefix, in order of names."""
        async with self.opened() as store:
            names = [
                name
                for name in await store.list(f"{self.folder}{prefix}")
                if name.endswith(".json")
            ]
            return [await _value(store, name) for name in names]


async def _value(store: ObjectStore, name: str) -> dict[str, Any]:
    data = await object_in(store, name, length_max=_BYTES_MAX)
    try:
        found: dict[str, Any] = json.loads(data or b"")
    except ValueError as error:
        raise DamagedError(f"{name} is damaged: {error}") from error
    return found

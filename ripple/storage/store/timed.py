"""Measures the calls of an object store."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from ripple.world.ports import Clock, ObjectStore

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StoreCall:
    """The duration of one call. length_bytes: put or got, 0 for the others. failed: it raised."""

    operation: str
    duration_ns: int
    length_bytes: int
    failed: bool


class TimedStore:
    """Reports every call to an observer, which must not raise."""

    def __init__(
        self, store: ObjectStore, clock: Clock, observe: Callable[[StoreCall], None]
    ) -> None:
        self._store = store
        self._clock = clock
        self._observe = observe

    async def put_if_absent(self, name: str, data: bytes) -> bool:
        """Store an object unless the name is taken; return whether this call stored it."""
        return await self._timed("put_if_absent", self._store.put_if_absent(name, data), len(data))

    async def get(self, name: str, *, length_max: int) -> bytes | None:
        """Return an object, None if there is none."""
        return await self._timed("get", self._store.get(name, length_max=length_max))

    async def list(self, prefix: str) -> list[str]:
        """Return the names that start with ``prefix``, sorted."""
        return await self._timed("list", self._store.list(prefix))

    async def delete(self, name: str) -> None:
        """Delete an object."""
        await self._timed("delete", self._store.delete(name))

    async def _timed(self, operation: str, call: Awaitable[T], length_bytes: int = 0) -> T:
        started_ns = self._clock.monotonic_ns()
        failed = True
        try:
            result = await call
            failed = False
            if isinstance(result, bytes):
                length_bytes = len(result)
            return result
        finally:
            taken_ns = self._clock.monotonic_ns() - started_ns
            self._observe(StoreCall(operation, taken_ns, length_bytes, failed))

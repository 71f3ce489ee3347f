"""An object store in memory that is slow, refuses, and loses replies after doing the work."""

from __future__ import annotations

import asyncio
import zlib
from typing import TYPE_CHECKING, TypeVar

from ripple.core.errors import LimitError
from ripple.testing.sim.chance import Chance
from ripple.testing.sim.effects import Effects, Trace
from ripple.testing.sim.faults import Planned
from ripple.world.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.testing.sim.faults import Fault

T = TypeVar("T")

DELAY_MS_MAX = 50
SLOW_SECONDS = 30


class SimStore:
    """The objects of one store, which outlive every process.

    ``seed`` decides how long replies take.
    """

    def __init__(self, effects: Effects | None = None, seed: int = 0) -> None:
        self.effects = effects or Effects(0, Planned(()), Trace())
        self.removed: frozenset[str] = frozenset()
        self._chance = Chance(seed, self.effects.life, "store")
        self._objects: dict[str, bytes] = {}

    async def put_if_absent(self, name: str, data: bytes) -> bool:
        def put() -> bool:
            if name in self._objects and "put_if_absent" not in self.removed:
                return False
            self._objects[name] = data
            return True

        stored = bytes(data)
        subject = f"{name} {len(stored)} {zlib.crc32(stored):08x}"
        return await self._call("store_put", subject, put)

    async def get(self, name: str, *, length_max: int) -> bytes | None:
        data = await self._call("store_read", name, lambda: self._objects.get(name))
        if data is not None and len(data) > length_max:
            raise LimitError(f"{name} is longer than {length_max} bytes")
        return data

    async def list(self, prefix: str) -> list[str]:
        return await self._call(
            "store_read",
            prefix,
            lambda: sorted([name for name in self._objects if name.startswith(prefix)]),
        )

    async def delete(self, name: str) -> None:
        await self._call("store_delete", name, lambda: self._objects.pop(name, None))

    def image(self) -> dict[str, bytes]:
        """Return all objects by name: an onlooker's view, no effect."""
        return dict(self._objects)

    def flip_bit(self, name: str, bit: int) -> None:
        """Damage an object as a bad medium does."""
        data = bytearray(self._objects[name])
        data[bit // 8] ^= 1 << bit % 8
        self._objects[name] = bytes(data)

    def next(self, effects: Effects, seed: int) -> SimStore:
        """Return the same objects as another process sees them."""
        store = SimStore(effects, seed)
        store.removed = self.removed
        store._objects = self._objects
        return store

    def copy(self, effects: Effects) -> SimStore:
        """Return a store of its own with the same objects."""
        store = self.next(effects, 0)
        store._objects = dict(self._objects)
        return store

    async def _call(self, name: str, subject: str, act: Callable[[], T]) -> T:
        # The work is done somewhere between the call and the reply.
        await self._delay()
        result, slow = self._strike(name, subject, act)
        if slow:
            await asyncio.sleep(SLOW_SECONDS)
        await self._delay()
        return result

    def _strike(self, name: str, subject: str, act: Callable[[], T]) -> tuple[T, bool]:
        """Carry out an effect; return its result, and whether the reply is slow."""
        slow = False

        def fail(fault: Fault, _: Chance) -> None:
            nonlocal slow
            if fault.kind == "store_slow":
                slow = True
            elif fault.kind == "store_refused":
                raise StoreError(f"{name} {subject}: refused (simulated)", done=False)
            else:
                if fault.kind == "store_lost_reply":
                    act()
                raise StoreError(f"{name} {subject}: no reply (simulated)", done=None)

        return self.effects.run(name, subject, act, fail), slow

    async def _delay(self) -> None:
        await asyncio.sleep(self._chance.below(DELAY_MS_MAX) / 1000)

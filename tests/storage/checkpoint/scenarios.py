"""Rival owners of one partition, whose processes die: the program that crashes are tried on."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ripple.storage.checkpoint import Checkpoints
from ripple.storage.fenced import FencedError
from ripple.storage.store import DiskStore
from ripple.testing import Faults
from tests.storage.checkpoint.kit import fed_engine, feed

if TYPE_CHECKING:
    from ripple.engine.machine import Snapshot
    from ripple.testing import SimWorld
    from ripple.world import ObjectStore

LAST = 2
# No fault of the disk or store: the scenario damages an object itself.
QUIET = Faults(kinds=())


def _snapshots() -> list[Snapshot]:
    """Snapshots whose cut is their index."""
    engine = fed_engine(2, 0)
    taken = [engine.snapshot()]
    for _ in range(LAST):
        feed(engine, 2, 1)
        taken.append(engine.snapshot())
    return taken


SNAPSHOTS = _snapshots()


async def on_disk(world: SimWorld, seed: int) -> None:
    await own(world, _on_disk(world))


async def in_store(world: SimWorld, seed: int) -> None:
    await own(world, world.store)


async def survived_on_disk(world: SimWorld, seed: int) -> None:
    await check(world, _on_disk(world))


async def survived_in_store(world: SimWorld, seed: int) -> None:
    await check(world, world.store)


async def own(world: SimWorld, store: ObjectStore) -> None:
    """Two owners count on from the latest checkpoint, taking the partition from one another.

    The witness keeps what each count that was acknowledged was acknowledged to.
    """
    await check(world, store)
    acknowledged: dict[int, int] = world.witness.setdefault("acknowledged", {})

    async def count() -> None:
        for _ in range(2):
            checkpoints = _checkpoints(world, store)
            try:
                owner = await checkpoints.claim(world.clock, world.random, keep=2)
                number = await found_number(world, checkpoints)
                while number < LAST:
                    number += 1
                    await world.clock.sleep(world.random.below(100) / 1000)
                    await owner.write(SNAPSHOTS[number])
                    taker = acknowledged.setdefault(number, owner.epoch)
                    assert taker == owner.epoch, f"{number} was written by {taker}, {owner.epoch}"
            except FencedError:
                continue
            return

    async with asyncio.TaskGroup() as owners:
        owners.create_task(count())
        owners.create_task(count())
    await check(world, store)


async def check(world: SimWorld, store: ObjectStore) -> None:
    """What any process finds: all that was acknowledged and not since replaced, whole."""
    checkpoints = _checkpoints(world, store)
    await found_number(world, checkpoints)
    assert await checkpoints.verify() == ()


async def found_number(world: SimWorld, checkpoints: Checkpoints) -> int:
    acknowledged = max(world.witness.get("acknowledged", {}), default=0)
    found = await checkpoints.latest()
    number = found.snapshot.cut["trades"] if found else 0
    assert number >= acknowledged, f"checkpoint {acknowledged} is gone, {number} is left"
    assert found is None or found.snapshot == SNAPSHOTS[number]
    return number


async def bad_medium(world: SimWorld, seed: int) -> None:
    """A bit of the newest checkpoint flips: it is passed over, and the one before is used."""
    checkpoints = _checkpoints(world, world.store)
    owner = await checkpoints.claim(world.clock, world.random)
    await owner.write(SNAPSHOTS[1])
    newest = await owner.write(SNAPSHOTS[2])
    name = newest.parts[0].object_name
    if seed % 2:
        name = (await world.store.list(checkpoints.manifest.prefix))[-1]
    data = await world.store.get(name, length_max=1 << 20)
    assert data is not None
    world.store.flip_bit(name, world.random.below(8 * len(data)))
    found = await checkpoints.latest()
    assert found is not None
    assert found.snapshot == SNAPSHOTS[1], "what was damaged was used"
    assert name in found.damaged[0]


def _on_disk(world: SimWorld) -> ObjectStore:
    disk = DiskStore(world.disk, world.random, "checkpoints", guards=world.guards)
    return Unhurried(world, disk)


def _checkpoints(world: SimWorld, store: ObjectStore) -> Checkpoints:
    return Checkpoints(store, "count", entries_kept=1, guards=world.guards)


class Unhurried:
    """A store that lets others run before each call, as one behind a network does."""

    def __init__(self, world: SimWorld, store: ObjectStore) -> None:
        self._clock = world.clock
        self._store = store

    async def put_if_absent(self, name: str, data: bytes) -> bool:
        await self._clock.sleep(0)
        return await self._store.put_if_absent(name, data)

    async def get(self, name: str, *, length_max: int) -> bytes | None:
        await self._clock.sleep(0)
        return await self._store.get(name, length_max=length_max)

    async def list(self, prefix: str) -> list[str]:
        await self._clock.sleep(0)
        return await self._store.list(prefix)

    async def delete(self, name: str) -> None:
        await self._clock.sleep(0)
        await self._store.delete(name)

"""The store on a disk survives crashes."""

from __future__ import annotations

import asyncio

import pytest

from ripple.storage.store import DiskStore
from ripple.testing import SimulationError, SimWorld, enumerate_crashes, explore
from ripple.world import StoreError


async def put_objects(world: SimWorld, seed: int) -> None:
    """Two writers put objects; what one was told to be stored is there, whole, for ever."""
    store = DiskStore(world.disk, world.random, "objects")
    stored: dict[str, bytes] = world.witness.setdefault("stored", {})
    for name, data in stored.items():
        assert await store.get(name, length_max=1000) == data, f"{name} was lost, torn or replaced"

    async def put(name: str, writer: bytes) -> None:
        data = (writer + world.random.bytes(4)) * 30
        if await store.put_if_absent(name, data):
            assert name not in stored, f"{name} was stored twice"
            stored[name] = data

    try:
        for number in range(3):
            name = f"manifest/{number}.bin"
            await asyncio.gather(put(name, b"a"), put(name, b"b"))
    except StoreError:
        # It stays unknown who has won; nobody was told.
        assert world.effects.landed
        raise


def test_disk_store_survives_every_crash() -> None:
    enumerate_crashes(put_objects, pairs=30)
    explore(put_objects, seeds=range(300))


@pytest.mark.parametrize("safeguard", ["fsync_file", "fsync_folder", "link_absent"])
def test_disk_store_without_a_safeguard_is_found_out(safeguard: str) -> None:
    with pytest.raises(SimulationError, match=r"lost|twice"):
        explore(put_objects, seeds=range(1000), without=(safeguard,))

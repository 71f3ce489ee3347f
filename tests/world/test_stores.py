"""Every store of the library keeps the contract, and the one on a disk survives crashes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from ripple.checkpoint.stores import DiskStore, MemoryStore
from ripple.testing import (
    SimStore,
    SimulationError,
    SimWorld,
    enumerate_crashes,
    explore,
    sim_world,
)
from ripple.world import ObjectStore, StoreError, live_world
from tests.world.store_contract import StoreContract


class TestEveryStore(StoreContract):
    @pytest.fixture(params=["simulated", "memory", "live disk", "simulated disk"])
    def store(self, request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
        if request.param == "simulated":
            return SimStore()
        if request.param == "memory":
            return MemoryStore()
        world = live_world(tmp_path) if request.param == "live disk" else sim_world()
        return DiskStore(world.disk, world.random)


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

"""Small programs that are right, and wrong as soon as one of their safeguards is off."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ripple.world import DiskFullError, StoreError

if TYPE_CHECKING:
    from ripple.testing import SimWorld

LAST = 4
LENGTH = 100


def temp_and_rename(world: SimWorld, seed: int) -> None:
    """Replace a file by the next number until it says LAST; never lose one that was promised."""
    disk = world.disk
    number = 0
    disk.make_folder("state")
    if disk.exists("state/number"):
        number = decode(disk.read_bytes("state/number", length_max=LENGTH))
    promised = world.witness.get("number", 0)
    assert number >= promised, f"{promised} was promised, {number} is left"
    for name in disk.list("state"):
        if name.endswith(".new"):
            disk.remove(f"state/{name}")
    while number < LAST:
        number += 1
        beside = f"state/{world.random.bytes(4).hex()}.new"
        try:
            file = disk.open(beside, exclusive=True)
            try:
                file.append(encode(number))
                file.sync()
            finally:
                file.close()
        except DiskFullError:
            disk.remove(beside) if disk.exists(beside) else None
            raise
        disk.rename(beside, "state/number")
        disk.sync_folder("state")
        world.witness["number"] = number


def encode(number: int) -> bytes:
    return f"{number}".rjust(LENGTH, "0").encode()


def decode(data: bytes) -> int:
    assert len(data) == LENGTH, f"torn: {data!r}"
    assert data.isdigit(), f"torn: {data!r}"
    return int(data)


async def counting_workers(world: SimWorld, seed: int) -> None:
    """Three tasks add to one counter in a file, under a lock; none of their steps is lost."""
    disk = world.disk
    mutex = asyncio.Lock()
    disk.make_folder("log")
    file = disk.open("log/steps", create=True)
    disk.sync_folder("log")
    whole = file.size() - file.size() % LENGTH
    while whole and not file.read(whole - LENGTH, LENGTH).isdigit():
        whole -= LENGTH
    file.truncate(whole)
    file.sync()
    assert whole >= LENGTH * world.witness.get("steps", 0)

    async def work(name: int) -> None:
        while file.size() < 9 * LENGTH:
            async with mutex:
                file.append(encode(name))
                await asyncio.to_thread(file.sync)
                world.witness["steps"] = file.size() // LENGTH
            await world.clock.sleep(name / 10)

    async with asyncio.timeout(60), asyncio.TaskGroup() as tasks:
        for name in range(1, 4):
            tasks.create_task(work(name))


async def one_winner(world: SimWorld, seed: int) -> None:
    """Two owners race for each version in a store whose replies may be lost; one of them wins."""
    wins: dict[int, str] = world.witness.setdefault("wins", {})

    async def own(name: str) -> None:
        for version in range(5):
            if await win(name.encode() + world.random.bytes(8), f"manifest/{version}"):
                assert wins.setdefault(version, name) == name, f"two winners of {version}"

    async def win(nonce: bytes, name: str) -> bool:
        for _ in range(10):
            try:
                if await world.store.put_if_absent(name, nonce):
                    return True
                return await world.store.get(name, length_max=100) == nonce
            except StoreError:
                await world.clock.sleep(1)
        raise StoreError("gave up", done=None)

    await asyncio.gather(own(f"{world.effects.life}a"), own(f"{world.effects.life}b"))

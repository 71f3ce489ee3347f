"""A folder in front of a store: what it has is not fetched, what is damaged is not believed."""

from __future__ import annotations

import asyncio
import errno
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from ripple.storage.store import MemoryStore
from ripple.storage.store.cached import DIGEST_BYTES, CachedStore
from ripple.testing import Chance
from ripple.world import LiveDisk, ObjectStore
from ripple.world.live_disk import LiveFile
from tests.world.store_contract import StoreContract


class Counting(MemoryStore):
    def __init__(self) -> None:
        super().__init__()
        self.gets = 0

    async def get(self, name: str, *, length_max: int) -> bytes | None:
        self.gets += 1
        return await super().get(name, length_max=length_max)


def cached(store: ObjectStore, folder: Path, bytes_max: int = 1 << 20) -> CachedStore:
    return CachedStore(
        store,
        LiveDisk(folder),
        Chance(),
        bytes_max=bytes_max,
        is_kept=lambda name: name.startswith("kept/"),
    )


class TestCached(StoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> ObjectStore:
        return CachedStore(
            MemoryStore(), LiveDisk(tmp_path), Chance(), bytes_max=1000, is_kept=lambda _: True
        )


async def test_cache_goes_on_while_all_threads_of_the_loop_are_blocked(tmp_path: Path) -> None:
    over = Event()
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
    blocked = asyncio.create_task(asyncio.to_thread(over.wait))
    await asyncio.sleep(0)
    store = cached(MemoryStore(), tmp_path)
    try:
        await store.put_if_absent("kept/1.bin", b"data")
        assert await store.get("kept/1.bin", length_max=4) == b"data"
        await store.delete("kept/1.bin")
    finally:
        over.set()
        await blocked


async def test_cached_object_is_not_fetched_again(tmp_path: Path) -> None:
    inner = Counting()
    one, other = cached(inner, tmp_path / "one"), cached(inner, tmp_path / "other")
    await one.put_if_absent("kept/1.bin", b"data")
    assert await one.get("kept/1.bin", length_max=4) == b"data"
    assert inner.gets == 0
    for _ in range(3):
        assert await other.get("kept/1.bin", length_max=4) == b"data"
    assert await cached(inner, tmp_path / "other").get("kept/1.bin", length_max=4) == b"data"
    assert inner.gets == 1


async def test_mutable_object_is_always_fetched(tmp_path: Path) -> None:
    inner = Counting()
    store = cached(inner, tmp_path)
    await store.put_if_absent("chain/1.json", b"old")
    await inner.delete("chain/1.json")
    await inner.put_if_absent("chain/1.json", b"new")
    assert await store.get("chain/1.json", length_max=3) == b"new"


@pytest.mark.parametrize("position", [0, DIGEST_BYTES, -1])
async def test_damaged_cache_file_is_fetched_again(tmp_path: Path, position: int) -> None:
    inner = Counting()
    store = cached(inner, tmp_path)
    await store.put_if_absent("kept/1.bin", b"data")
    (file,) = tmp_path.iterdir()
    damaged = bytearray(file.read_bytes())
    damaged[position] ^= 1
    file.write_bytes(damaged)
    assert await store.get("kept/1.bin", length_max=4) == b"data"
    assert await store.get("kept/1.bin", length_max=4) == b"data"
    assert inner.gets == 1


async def test_the_oldest_go_where_there_is_no_room(tmp_path: Path) -> None:
    inner = Counting()
    store = cached(inner, tmp_path, bytes_max=2 * (DIGEST_BYTES + 100))
    for number in range(3):
        await store.put_if_absent(f"kept/{number}.bin", bytes(100))
    await store.put_if_absent("kept/large.bin", bytes(1000))
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) == 2 * (DIGEST_BYTES + 100)
    for number in (2, 1):
        await store.get(f"kept/{number}.bin", length_max=100)
    assert inner.gets == 0
    await store.get("kept/0.bin", length_max=100)
    assert inner.gets == 1


async def test_half_a_file_of_a_killed_process_makes_room_first(tmp_path: Path) -> None:
    store = cached(Counting(), tmp_path, bytes_max=2 * (DIGEST_BYTES + 100))
    await store.put_if_absent("kept/1.bin", bytes(100))
    (tmp_path / ".tmp-00").write_bytes(bytes(100))
    await store.put_if_absent("kept/2.bin", bytes(100))
    assert len(list(tmp_path.iterdir())) == 2
    assert not (tmp_path / ".tmp-00").exists()


async def test_files_of_others_are_let_alone_and_cost_nothing(tmp_path: Path) -> None:
    inner = Counting()
    store = cached(inner, tmp_path, bytes_max=DIGEST_BYTES + 100)
    (tmp_path / "lost+found").mkdir()
    (tmp_path / "notes.txt").write_bytes(bytes(500))
    for number in range(2):
        assert await store.put_if_absent(f"kept/{number}.bin", bytes(100))
    assert await store.get("kept/1.bin", length_max=100) == bytes(100)
    assert inner.gets == 0
    assert len(list(tmp_path.iterdir())) == 3


async def test_a_disk_that_is_full_is_left_without_halves(tmp_path: Path) -> None:
    class FullFile:
        def append(self, _: bytes) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        def close(self) -> None:
            pass

    class FullDisk(LiveDisk):
        def open(self, *args: Any, **given: Any) -> Any:
            super().open(*args, **given).close()
            return FullFile()

    inner = MemoryStore()
    store = CachedStore(inner, FullDisk(tmp_path), Chance(), bytes_max=1000, is_kept=lambda _: True)
    assert await store.put_if_absent("1.bin", b"data")
    assert list(tmp_path.iterdir()) == []


async def test_a_disk_that_can_do_nothing_costs_speed_only(tmp_path: Path) -> None:
    inner = Counting()
    folder = tmp_path / "cache"
    store = cached(inner, folder)
    folder.rmdir()
    folder.write_bytes(b"a file where the folder was")
    await store.put_if_absent("kept/1.bin", b"data")
    assert await store.get("kept/1.bin", length_max=4) == b"data"
    await store.delete("kept/1.bin")
    assert await store.get("kept/1.bin", length_max=4) is None


async def test_several_that_keep_at_once_make_room_for_all_of_them(tmp_path: Path) -> None:
    size, room = 1000, 3

    class SlowDisk(LiveDisk):
        def open(self, *args: Any, **given: Any) -> LiveFile:
            time.sleep(0.002)  # between counting what is there and adding to it
            return super().open(*args, **given)

    store = CachedStore(
        MemoryStore(),
        SlowDisk(tmp_path),
        Chance(),
        bytes_max=room * (size + DIGEST_BYTES),
        is_kept=lambda _: True,
    )
    names = [f"kept/{number}.bin" for number in range(20)]
    await asyncio.gather(*(store.put_if_absent(name, b"x" * size) for name in names))
    assert [path.stat().st_size for path in tmp_path.iterdir()] == [size + DIGEST_BYTES] * room

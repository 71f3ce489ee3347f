"""The contract of object stores; each form of the store runs it."""

from __future__ import annotations

import asyncio

import pytest

from ripple.core.errors import LimitError
from ripple.world import ObjectStore
from tests.examples import EXAMPLES, SAMPLED


class StoreContract:
    """Subclasses give the fixture ``store``: an empty one."""

    racers = 20
    race_names = 20 * EXAMPLES // SAMPLED

    async def test_first_put_wins(self, store: ObjectStore) -> None:
        assert await store.put_if_absent("a/1.bin", b"first")
        assert not await store.put_if_absent("a/1.bin", b"second")
        assert await store.get("a/1.bin", length_max=5) == b"first"

    async def test_one_of_many_puts_wins(self, store: ObjectStore) -> None:
        names = [str(number).encode() for number in range(9)]
        won = await asyncio.gather(*(store.put_if_absent("a.bin", name) for name in names))
        assert sum(won) == 1
        assert await store.get("a.bin", length_max=1) == names[won.index(True)]

    async def test_absent_object_is_none(self, store: ObjectStore) -> None:
        assert await store.get("a.bin", length_max=1) is None
        await store.delete("a.bin")
        assert await store.list("") == []

    async def test_long_object_is_not_read(self, store: ObjectStore) -> None:
        await store.put_if_absent("a.bin", b"123")
        with pytest.raises(LimitError):
            await store.get("a.bin", length_max=2)

    async def test_list_is_sorted_and_by_prefix(self, store: ObjectStore) -> None:
        for name in ("b/2.bin", "b/10.bin", "bb/1.bin", "b/x/1.bin", "root.bin"):
            await store.put_if_absent(name, b"")
        assert await store.list("b/") == ["b/10.bin", "b/2.bin", "b/x/1.bin"]
        assert await store.list("b/1") == ["b/10.bin"]
        assert await store.list("b") == ["b/10.bin", "b/2.bin", "b/x/1.bin", "bb/1.bin"]
        assert len(await store.list("")) == 5
        assert await store.list("nothing/") == []

    async def test_of_racing_puts_of_many_names_one_wins_each(self, store: ObjectStore) -> None:
        names = [f"race/{number}.bin" for number in range(self.race_names)]
        racers = [f"{number}".encode() * 100 for number in range(self.racers)]
        for name in names:
            puts = (store.put_if_absent(name, racer) for racer in racers)
            won = await asyncio.gather(*puts)
            assert sum(won) == 1
            assert await store.get(name, length_max=200) == racers[won.index(True)]
        assert await store.list("race/") == sorted(names)

    async def test_deleted_name_is_free_again(self, store: ObjectStore) -> None:
        await store.put_if_absent("a.bin", b"1")
        await store.delete("a.bin")
        await store.delete("a.bin")
        assert await store.get("a.bin", length_max=1) is None
        assert await store.put_if_absent("a.bin", b"2")

"""What every object store promises, on each of them and behind each wrapper."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from ripple.checkpoint import DiskStore, MemoryStore, RetryingStore, RetrySettings, TimedStore
from ripple.errors import LimitError
from ripple.world import LiveDisk, StoreError
from tests.checkpoint.kit import SeededRandom, StillClock, TroubledStore

KINDS = ["memory", "disk", "disk folder", "retrying", "timed", "retrying over trouble"]


@pytest.fixture(params=KINDS)
def store(request, tmp_path):
    if request.param == "disk":
        return DiskStore(LiveDisk(tmp_path), SeededRandom())
    if request.param == "disk folder":
        return DiskStore(LiveDisk(tmp_path), SeededRandom(), "deep/below")
    if request.param == "retrying":
        return RetryingStore(MemoryStore(), StillClock(), SeededRandom())
    if request.param == "timed":
        return TimedStore(MemoryStore(), StillClock(), lambda call: None)
    if request.param == "retrying over trouble":
        troubled = TroubledStore(MemoryStore(), itertools.cycle(["before", "", "before", ""]))
        return RetryingStore(troubled, StillClock(), SeededRandom())
    return MemoryStore()


def _run(story) -> None:
    asyncio.run(story)


def test_object_is_there_for_every_later_call(store) -> None:
    async def story() -> None:
        assert await store.get("a/b/1.json", length_max=9) is None
        assert await store.put_if_absent("a/b/1.json", b"one")
        assert await store.get("a/b/1.json", length_max=3) == b"one"
        assert await store.list("a/b/") == ["a/b/1.json"]

    _run(story())


def test_taken_name_is_not_given_again_until_deleted(store) -> None:
    async def story() -> None:
        assert await store.put_if_absent("a/1.json", b"one")
        assert not await store.put_if_absent("a/1.json", b"two")
        assert await store.get("a/1.json", length_max=9) == b"one"
        await store.delete("a/1.json")
        await store.delete("a/1.json")
        assert await store.get("a/1.json", length_max=9) is None
        assert await store.put_if_absent("a/1.json", b"two")

    _run(story())


def test_longer_object_than_allowed_is_an_error(store) -> None:
    async def story() -> None:
        await store.put_if_absent("a/1.json", b"four")
        with pytest.raises(LimitError):
            await store.get("a/1.json", length_max=3)

    _run(story())


def test_list_is_sorted_and_by_prefix(store) -> None:
    async def story() -> None:
        for name in ["b/2.x", "b/10.x", "b/c/1.x", "bb/1.x", "root.x"]:
            await store.put_if_absent(name, b"")
        assert await store.list("b/") == ["b/10.x", "b/2.x", "b/c/1.x"]
        assert await store.list("b/1") == ["b/10.x"]
        assert await store.list("b") == ["b/10.x", "b/2.x", "b/c/1.x", "bb/1.x"]
        assert await store.list("") == ["b/10.x", "b/2.x", "b/c/1.x", "bb/1.x", "root.x"]
        assert await store.list("nothing/") == []

    _run(story())


def test_of_many_puts_of_one_name_one_wins(store) -> None:
    async def story() -> None:
        won = await asyncio.gather(
            *(store.put_if_absent("a/1.json", bytes([i])) for i in range(20))
        )
        assert sum(won) == 1
        assert await store.get("a/1.json", length_max=1) == bytes([won.index(True)])

    _run(story())


def test_half_written_object_is_invisible_and_cleaned_away(tmp_path) -> None:
    async def story() -> None:
        (tmp_path / "a").mkdir()
        (tmp_path / "a" / ".tmp-00").write_bytes(b"ha")
        store = DiskStore(LiveDisk(tmp_path), SeededRandom())
        assert await store.list("a/") == []
        await store.put_if_absent("a/1.json", b"one")
        assert [path.name for path in (tmp_path / "a").iterdir()] == ["1.json"]

    _run(story())


@pytest.mark.parametrize("name", ["a.b/1.json", "a/b", "a/.b", ".tmp-1"])
def test_name_that_a_disk_cannot_tell_from_a_folder_is_refused(tmp_path, name: str) -> None:
    store = DiskStore(LiveDisk(tmp_path), SeededRandom())
    with pytest.raises(ValueError, match="dot"):
        _run(store.put_if_absent(name, b""))


def test_unwritable_folder_is_a_store_error_with_its_cause(tmp_path) -> None:
    (tmp_path / "a").write_bytes(b"a file where a folder should be")
    store = DiskStore(LiveDisk(tmp_path), SeededRandom())
    with pytest.raises(StoreError, match="cannot be stored") as caught:
        _run(store.put_if_absent("a/1.json", b""))
    assert caught.value.done is False
    assert isinstance(caught.value.__cause__, OSError)


def test_store_that_never_recovers_is_given_up_with_the_outcome_unknown() -> None:
    clock = StillClock()
    inner = TroubledStore(MemoryStore(), iter(["after", *["before"] * 99]))
    store = RetryingStore(inner, clock, SeededRandom())
    with pytest.raises(StoreError, match="given up after 5 attempts") as caught:
        _run(store.put_if_absent("a/1.json", b""))
    assert caught.value.done is None
    assert inner.calls == 5
    assert 0.75e9 <= clock.slept_ns <= 1.5e9  # 0.1 + 0.2 + 0.4 + 0.8 s, each between half and all


def test_deadline_ends_retries_early() -> None:
    settings = RetrySettings(attempts_max=50, deadline_s=1.0)
    inner = TroubledStore(MemoryStore(), itertools.repeat("before"))
    clock = StillClock()
    with pytest.raises(StoreError) as caught:
        _run(RetryingStore(inner, clock, SeededRandom(), settings).list("a/"))
    assert caught.value.done is False
    assert clock.slept_ns < 1e9


def test_attempt_without_answer_counts_as_unknown() -> None:
    class Silent(MemoryStore):
        async def put_if_absent(self, name, data) -> bool:
            await asyncio.Event().wait()
            return True

    settings = RetrySettings(attempts_max=2, attempt_s=0.01)
    with pytest.raises(StoreError, match="no answer") as caught:
        _run(
            RetryingStore(Silent(), StillClock(), SeededRandom(), settings).put_if_absent(
                "a.b", b""
            )
        )
    assert caught.value.done is None


def test_observer_hears_of_every_call() -> None:
    seen = []
    store = TimedStore(
        TroubledStore(MemoryStore(), iter(["", "", "before"])), StillClock(), seen.append
    )

    async def story() -> None:
        await store.put_if_absent("a/1.json", b"one")
        await store.get("a/1.json", length_max=3)
        with pytest.raises(StoreError):
            await store.list("a/")

    _run(story())
    assert [(c.operation, c.length_bytes, c.failed) for c in seen] == [
        ("put_if_absent", 3, False),
        ("get", 3, False),
        ("list", 0, True),
    ]

"""What every object store promises, on each of them and behind each wrapper."""

from __future__ import annotations

import asyncio
import errno
import itertools
from pathlib import Path

import pytest

from ripple.storage.store import (
    DiskStore,
    MemoryStore,
    RetryingStore,
    RetrySettings,
    StoreRefusedError,
)
from ripple.testing import Chance, SimDisk, SimStore
from ripple.world import LiveDisk, ObjectStore, StoreError
from ripple.world.errors import DiskFullError, UnreadableError
from tests.storage.checkpoint.kit import TroubledStore
from tests.storage.log.trades import ManualClock
from tests.world.store_contract import StoreContract

KINDS = [
    *("memory", "disk", "disk folder", "simulated", "simulated disk"),
    *("retrying", "retrying over trouble"),
]


class TestEveryStore(StoreContract):
    @pytest.fixture(params=KINDS)
    def store(self, request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
        troubled = TroubledStore(MemoryStore(), itertools.cycle(["before", "", "before", ""]))
        stores = {
            "memory": MemoryStore(),
            "disk": DiskStore(LiveDisk(tmp_path), Chance()),
            "disk folder": DiskStore(LiveDisk(tmp_path), Chance(), "deep/below"),
            "simulated": SimStore(),
            "simulated disk": DiskStore(SimDisk(), Chance()),
            "retrying": RetryingStore(MemoryStore(), ManualClock(), Chance()),
            "retrying over trouble": RetryingStore(troubled, ManualClock(), Chance()),
        }
        return stores[request.param]


async def test_half_written_object_is_invisible_and_cleaned_away(tmp_path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / ".tmp-00").write_bytes(b"ha")
    store = DiskStore(LiveDisk(tmp_path), Chance())
    assert await store.list("a/") == []
    await store.put_if_absent("a/1.json", b"one")
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["1.json"]


@pytest.mark.parametrize("name", ["a.b/1.json", "a/b", "a/.b", ".tmp-1"])
async def test_name_that_a_disk_cannot_tell_from_a_folder_is_refused(tmp_path, name: str) -> None:
    store = DiskStore(LiveDisk(tmp_path), Chance())
    with pytest.raises(ValueError, match="dot"):
        await store.put_if_absent(name, b"")


async def test_unwritable_folder_is_a_store_error_with_its_cause(tmp_path) -> None:
    (tmp_path / "a").write_bytes(b"a file where a folder should be")
    store = DiskStore(LiveDisk(tmp_path), Chance())
    with pytest.raises(StoreError, match="cannot be stored") as caught:
        await store.put_if_absent("a/1.json", b"")
    assert caught.value.done is False
    assert isinstance(caught.value.__cause__, OSError)


async def test_full_disk_is_reported_with_the_same_text_each_time(tmp_path) -> None:
    """Whoever holds back what was just said would not hold back another temporary name."""

    class Full(LiveDisk):
        def open(self, path: str, *, exclusive: bool = False):
            raise DiskFullError(path)

    store = DiskStore(Full(tmp_path), Chance())
    said = set()
    for _ in range(2):
        with pytest.raises(StoreError, match="cannot be stored in a: no space left") as caught:
            await store.put_if_absent("a/1.json", b"")
        said.add(str(caught.value))
    assert len(said) == 1


async def test_store_that_never_recovers_is_given_up_with_the_outcome_unknown() -> None:
    clock = ManualClock()
    inner = TroubledStore(MemoryStore(), iter(["after", *["before"] * 99]))
    store = RetryingStore(inner, clock, Chance())
    with pytest.raises(StoreError, match="gave up after 5 attempts") as caught:
        await store.put_if_absent("a/1.json", b"")
    assert caught.value.done is None
    assert inner.calls == 5
    assert 0.75e9 <= clock.time_ns <= 1.5e9  # 0.1 + 0.2 + 0.4 + 0.8 s, each between half and all


async def test_deadline_ends_retries_early() -> None:
    settings = RetrySettings(attempts_max=50, deadline_s=1.0)
    inner = TroubledStore(MemoryStore(), itertools.repeat("before"))
    clock = ManualClock()
    with pytest.raises(StoreError) as caught:
        await RetryingStore(inner, clock, Chance(), settings).list("a/")
    assert caught.value.done is False
    assert clock.time_ns < 1e9


async def test_attempt_without_answer_counts_as_unknown() -> None:
    class Silent(MemoryStore):
        async def put_if_absent(self, name, data) -> bool:
            await asyncio.Event().wait()
            return True

    settings = RetrySettings(attempts_max=2, attempt_s=0.01)
    with pytest.raises(StoreError, match="no answer") as caught:
        await RetryingStore(Silent(), ManualClock(), Chance(), settings).put_if_absent("a.b", b"")
    assert caught.value.done is None


async def test_stopped_store_retries_no_more() -> None:
    clock = ManualClock()
    inner = TroubledStore(MemoryStore(), itertools.repeat("before"))
    settings = RetrySettings(attempts_max=1_000_000, deadline_s=1e6)
    store = RetryingStore(inner, clock, Chance(), settings, stop=lambda: clock.time_ns > 100e9)
    with pytest.raises(StoreError, match="a/ refused"):
        await store.list("a/")
    assert clock.time_ns < 102e9  # a pause of 30 s is cut short


async def test_foreign_files_in_a_folder_are_skipped(tmp_path, monkeypatch) -> None:
    store = DiskStore(LiveDisk(tmp_path), Chance())
    await store.put_if_absent("a/1.json", b"")
    (tmp_path / "README").touch()
    (tmp_path / "lost+found").mkdir()
    listed = LiveDisk.list

    def denied(disk: LiveDisk, folder: str) -> list[str]:
        if folder == "lost+found":
            raise PermissionError(folder)
        return listed(disk, folder)

    monkeypatch.setattr(LiveDisk, "list", denied)
    assert await store.list("") == ["a/1.json"]


async def test_unreadable_object_is_distinguished_from_an_unavailable_store(tmp_path) -> None:
    (tmp_path / "a" / "1.json").mkdir(parents=True)
    (tmp_path / "b").write_bytes(b"a file where a folder should be")
    said: list[str] = []
    disk = DiskStore(LiveDisk(tmp_path), Chance())
    store = RetryingStore(disk, ManualClock(), Chance(), failed=said.append)
    with pytest.raises(UnreadableError, match=r"a/1\.json cannot be read: .*[Ii]s a directory"):
        await store.get("a/1.json", length_max=9)
    assert not said, "asked for once"
    assert await store.get("b/1.json", length_max=9) is None
    with pytest.raises(StoreRefusedError, match="a file stands where its folder should be"):
        await store.list("b/")

    class Denied(LiveDisk):
        """A folder that may not be entered: nothing in it can be seen."""

        def read_bytes(self, path: str, *, length_max: int) -> bytes:
            raise PermissionError(errno.EACCES, "Permission denied", path)

        def exists(self, path: str) -> bool:
            raise PermissionError(errno.EACCES, "Permission denied", path)

    with pytest.raises(StoreError) as caught:
        await DiskStore(Denied(tmp_path)).get("a/1.json", length_max=9)
    assert not isinstance(caught.value, UnreadableError)


@pytest.mark.parametrize("failures", [2, 3])
async def test_failed_disk_read_is_retried_before_the_error(tmp_path, failures: int) -> None:
    class Failing(LiveDisk):
        left = failures

        def read_bytes(self, path: str, *, length_max: int) -> bytes:
            self.left -= 1
            if self.left >= 0:
                raise OSError(errno.EIO, "Input/output error", path)
            return super().read_bytes(path, length_max=length_max)

    store = DiskStore(Failing(tmp_path), Chance())
    await store.put_if_absent("a/1.json", b"one")
    if failures == 2:
        assert await store.get("a/1.json", length_max=9) == b"one"
    else:
        with pytest.raises(UnreadableError, match="Input/output error"):
            await store.get("a/1.json", length_max=9)


async def test_a_delete_is_given_up_where_all_else_is_waited_for() -> None:
    """Whoever waits for the store for days waits for what it needs, and not for room."""
    clock = ManualClock()
    inner = TroubledStore(MemoryStore(), itertools.repeat("before"))
    settings = RetrySettings(attempts_max=1_000_000, deadline_s=30 * 86_400.0)
    with pytest.raises(StoreError, match="gave up after 5 attempts"):
        await RetryingStore(inner, clock, Chance(), settings).delete("a/1.json")
    assert clock.time_ns < 60e9

"""Checkpoints of a partition: what counts, what is passed over, and who may write."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripple.engine.machine import Engine, Snapshot
from ripple.storage.checkpoint import CheckpointError, Checkpoints
from ripple.storage.fenced import ENTRIES_KEPT, DamagedError, FencedError
from ripple.storage.store import DiskStore, MemoryStore, RetryingStore
from ripple.testing import Chance
from ripple.world import LiveDisk, StoreError
from tests.examples import EXAMPLES
from tests.storage.checkpoint.kit import TroubledStore, claimed, fed_engine, feed
from tests.storage.log.trades import ManualClock


def _snapshots(count: int) -> list[Snapshot]:
    engine = fed_engine(10, 10)
    taken = []
    for _ in range(count):
        feed(engine, 10, 1)
        taken.append(engine.snapshot())
    return taken


FEW = _snapshots(4)


async def test_latest_is_what_was_written_last() -> None:
    checkpoints, owner = await claimed(MemoryStore())
    assert await checkpoints.latest() is None
    for snapshot in FEW:
        written = await owner.write(snapshot)
        found = await checkpoints.latest()
        assert found is not None
        assert found.checkpoint == written
        assert found.snapshot == snapshot
    assert [one.cut["trades"] for one in await checkpoints.list()] == [14, 13, 12]
    assert await checkpoints.verify() == ()


async def test_reader_that_an_owner_overtakes_finds_what_is_new() -> None:
    """Between the manifest and the file that it names, the file is replaced and deleted."""

    _, owner = await claimed(store := MemoryStore(), keep=1)
    await owner.write(FEW[0])

    class Overtaken(MemoryStore):
        async def get(self, name, *, length_max):
            if "/state/" in name and len(late):
                await owner.write(late.pop())
            return await store.get(name, length_max=length_max)

    late = [FEW[1]]
    overtaken = Overtaken()
    overtaken.list = store.list
    found = await Checkpoints(overtaken, "test").latest()
    assert found.snapshot == FEW[1]
    assert found.damaged == ()


async def test_files_of_old_checkpoints_and_entries_are_deleted() -> None:
    store = MemoryStore()
    checkpoints, owner = await claimed(store, keep=2)
    for _ in range(5 * ENTRIES_KEPT):
        await owner.write(FEW[0])
    assert len(await store.list("test/00000/state/")) == 2
    assert len(await store.list("test/00000/manifest/")) <= 2 * ENTRIES_KEPT + 2
    assert await checkpoints.verify() == ()


@pytest.mark.parametrize("damage", ["flipped", "cut", "longer", "missing"])
@pytest.mark.parametrize("what", ["state", "manifest"])
async def test_damaged_newest_is_reported_and_the_one_before_is_used(
    what: str, damage: str
) -> None:
    store = MemoryStore()
    checkpoints, owner = await claimed(store)
    for snapshot in FEW[:2]:
        newest = await owner.write(snapshot)
    name = newest.parts[0].object_name
    if what == "manifest":
        name = (await store.list("test/00000/manifest/"))[-1]
    data = await store.get(name, length_max=1 << 20)
    await store.delete(name)
    middle = len(data) // 2
    bad = {
        "flipped": data[:middle] + bytes([data[middle] ^ 4]) + data[middle + 1 :],
        "cut": data[:-1],
        "longer": data + b"\0",
    }
    if damage != "missing":
        await store.put_if_absent(name, bad[damage])
    found = await checkpoints.latest()
    assert found.snapshot == FEW[0]
    if (what, damage) != ("manifest", "missing"):  # an entry nobody knows of is no entry
        assert name in found.damaged[0]
        assert any(name in problem for problem in await checkpoints.verify())
        (successor,) = [await claimed(store, seed=1)]
        assert successor[1].epoch > owner.epoch
        with pytest.raises(FencedError):
            await owner.write(FEW[2])


@pytest.mark.parametrize("what", ["state", "manifest"])
async def test_unreadable_newest_entry_is_skipped_like_a_damaged_one(tmp_path, what: str) -> None:
    store = DiskStore(LiveDisk(tmp_path), Chance())
    checkpoints, owner = await claimed(store)
    for snapshot in FEW[:2]:
        newest = await owner.write(snapshot)
    names = await store.list("test/00000/manifest/")
    name = newest.parts[0].object_name if what == "state" else names[-1]
    (tmp_path / name).unlink()
    (tmp_path / name).mkdir()
    found = await checkpoints.latest()
    assert found.snapshot == FEW[0]
    assert f"{name} cannot be read" in found.damaged[0]
    assert any(name in problem for problem in await checkpoints.verify())
    _, successor = await claimed(store, seed=1)
    assert successor.epoch > owner.epoch
    assert successor.damaged == (found.damaged if what == "manifest" else ())


async def test_claim_fails_without_a_readable_entry(tmp_path) -> None:
    """The checkpoints would count no more, and their files would be deleted."""

    store = DiskStore(LiveDisk(tmp_path), Chance())
    _, owner = await claimed(store)
    await owner.write(FEW[0])
    names = await store.list("test/00000/manifest/")
    for name in names:
        (tmp_path / name).rename(tmp_path / f"{name}.away")
        (tmp_path / name).mkdir()
    before = await store.list("test/")
    with pytest.raises(DamagedError, match="remove all of test/00000/manifest/ to begin"):
        await claimed(store, seed=1)
    assert await store.list("test/") == before
    for name in names:
        (tmp_path / name).rmdir()
        (tmp_path / f"{name}.away").rename(tmp_path / name)
    checkpoints, _ = await claimed(store, seed=1)
    assert (await checkpoints.latest()).snapshot == FEW[0]


async def test_without_a_complete_checkpoint_it_stops_instead_of_starting_anew() -> None:
    store = MemoryStore()
    checkpoints, owner = await claimed(store)
    written = await owner.write(FEW[0])
    await store.delete(written.parts[0].object_name)
    with pytest.raises(DamagedError, match="is missing"):
        await checkpoints.latest()


async def test_zombie_checkpoint_rejected() -> None:
    store = MemoryStore()
    checkpoints, old = await claimed(store, seed=1)
    await old.write(FEW[0])
    _, new = await claimed(store, seed=2)
    assert new.epoch > old.epoch
    kept = await checkpoints.list()
    for attempt in (old.write(FEW[1]), old.write(FEW[1]), old.delete(kept[0].name)):
        with pytest.raises(FencedError):
            await attempt
    assert await checkpoints.list() == kept
    await new.write(FEW[2])
    assert (await checkpoints.latest()).snapshot == FEW[2]
    assert await checkpoints.verify() == ()


async def test_manifest_gc_does_not_reopen_fence() -> None:
    """Its next entry's name is free again, because the entry of that number was deleted."""

    store = MemoryStore()
    checkpoints, old = await claimed(store, seed=1)
    await old.write(FEW[0])
    _, new = await claimed(store, seed=2)
    for _ in range(5 * ENTRIES_KEPT):
        await new.write(FEW[1])
    name = old._fence.chain.name_of(old._fence.entry.number + 1)
    assert await store.get(name, length_max=1 << 20) is None
    with pytest.raises(FencedError, match="too late"):
        await old.write(FEW[2])
    assert (await checkpoints.latest()).snapshot == FEW[1]
    await new.write(FEW[3])
    assert (await checkpoints.latest()).snapshot == FEW[3]


async def test_epoch_that_is_not_higher_is_refused() -> None:
    store = MemoryStore()
    await claimed(store, epoch=7)
    for epoch in (6, 7):
        with pytest.raises(FencedError, match="epoch 7"):
            await claimed(store, seed=1, epoch=epoch)
    _, owner = await claimed(store, seed=1)
    assert owner.epoch == 8


async def test_files_that_a_dead_owner_never_committed_are_swept() -> None:
    store = MemoryStore()
    _, old = await claimed(store, seed=1)
    kept = await old.write(FEW[0])
    stray = "test/00000/state/0000000001-0011-0-vwap.arrow"
    running = "test/00000/state/0000000099-0011-0-vwap.arrow"  # of an owner after the next
    for name in (stray, running):
        await store.put_if_absent(name, b"half a checkpoint")
    await claimed(store, seed=2)
    assert await store.list("test/00000/state/") == [kept.parts[0].object_name, running]


async def test_conditional_put_lost_reply_is_own_win() -> None:
    inner = MemoryStore()
    store = RetryingStore(
        TroubledStore(inner, iter(["", "after", "", "", "", "after", "", "after"])),
        ManualClock(),
        Chance(),
    )
    checkpoints, owner = await claimed(store)
    await owner.write(FEW[0])
    assert (await checkpoints.latest()).snapshot == FEW[0]
    assert await checkpoints.verify() == ()


async def test_append_of_unknown_outcome_is_settled_by_the_next() -> None:
    store = MemoryStore()
    checkpoints, owner = await claimed(store)
    trouble = TroubledStore(store, iter(["", "after"]))  # the file, then the entry
    checkpoints.store = checkpoints.manifest.store = trouble
    with pytest.raises(StoreError) as caught:
        await owner.write(FEW[0])
    assert caught.value.done is None
    await owner.write(FEW[1])
    assert [one.cut["trades"] for one in await checkpoints.list()] == [12, 11]
    assert await checkpoints.verify() == ()


@settings(max_examples=14 * EXAMPLES)
@given(
    script=st.lists(st.sampled_from(["", "", "before", "after"]), max_size=60),
    who=st.lists(st.sampled_from(["write", "write", "claim", "delete"]), max_size=14),
)
async def test_whatever_the_store_does_the_latest_is_whole_and_not_older(script, who) -> None:
    """Acknowledged checkpoints stay; what was not acknowledged is there or not, but whole."""
    store = MemoryStore()
    trouble = TroubledStore(store, iter(script))
    reader = Checkpoints(store, "test")
    engine = fed_engine(3, 3)
    owners, acknowledged = [], 0
    for step, act in enumerate(who):
        feed(engine, 3, 1)
        try:
            if act == "claim" or not owners:
                owners.append((await claimed(trouble, seed=step))[1])
            elif act == "write":
                # An owner before the last is tried too: it must never succeed.
                if len(owners) > 1:
                    with pytest.raises((FencedError, StoreError)):
                        await owners[-2].write(engine.snapshot())
                await owners[-1].write(engine.snapshot())
                acknowledged = engine.cut["trades"]
            elif len(present := owners[-1]._fence.checkpoints) > 1:
                await owners[-1].delete(present[-1].name)
        except (StoreError, FencedError):
            pass
        found = await reader.latest()
        assert acknowledged <= (found.snapshot.cut["trades"] if found else 0)
        assert await reader.verify() == ()
        numbers = (await reader.manifest.numbers())[1]
        assert numbers == list(range(numbers[0], numbers[-1] + 1)) if numbers else True


async def test_checkpoint_that_is_not_there_cannot_be_deleted() -> None:
    _, owner = await claimed(MemoryStore())
    with pytest.raises(CheckpointError, match="there is no checkpoint nosuch"):
        await owner.delete("nosuch")


@pytest.mark.parametrize("pipeline", ["a/b", "..", "vwap.v2", "ünïcode"])
async def test_any_pipeline_name_is_a_name_on_disk(tmp_path, pipeline: str) -> None:
    from ripple.storage.store import DiskStore
    from ripple.world import LiveDisk

    checkpoints = Checkpoints(DiskStore(LiveDisk(tmp_path), Chance()), pipeline)
    owner = await checkpoints.claim(ManualClock(), Chance())
    await owner.write(FEW[0])
    assert Engine.restore(fed_engine(1, 1).plan, (await checkpoints.latest()).snapshot)


async def test_undeletable_and_foreign_files_stay_and_do_no_harm() -> None:
    class Kept(MemoryStore):
        async def delete(self, name: str) -> None:
            raise StoreError(f"{name} cannot be deleted", done=False)

    store = Kept()
    for name in ("0000000000-left.arrow", "README.txt", "x-1.arrow"):
        await store.put_if_absent(f"test/00000/state/{name}", b"")
    checkpoints, owner = await claimed(store)
    await owner.write(FEW[0])
    found = await checkpoints.latest()
    assert found.snapshot == FEW[0]

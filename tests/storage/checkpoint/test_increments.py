"""Checkpoints of changes: as good as those of everything, and never without what they build on."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import chain, repeat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ripple.cli.main import main
from ripple.engine.machine import Engine, Snapshot
from ripple.storage.checkpoint import CheckpointError, Checkpoints, Owner, decode_file
from ripple.storage.checkpoint.chain import chain_of, without_begun
from ripple.storage.store import DiskStore, MemoryStore
from ripple.testing import Chance
from ripple.world import LiveDisk, StoreError
from tests.engine.machine.ticks import sorted_rows
from tests.examples import EXAMPLES
from tests.storage.checkpoint.corruption import increment, undetected_cuts, undetected_flips
from tests.storage.checkpoint.kit import TroubledStore, claimed, fed_engine, feed
from tests.storage.log.trades import ManualClock

KEYS = 4_000  # so that a file of one change is short beside that of everything


def begun(engine: Engine, owner: Owner) -> Snapshot:
    """Return what the owner is to store next."""
    pending = engine.begin_snapshot(owner.since)
    while not pending.step(1000):
        pass
    return pending.finish()


async def written(engine: Engine, owner: Owner, count: int) -> None:
    """Store ``count`` checkpoints, each after one more event."""
    for _ in range(count):
        feed(engine, KEYS, 1)
        await owner.write(begun(engine, owner))


async def damage(store: MemoryStore, name: str) -> None:
    data = await store.get(name, length_max=1 << 20)
    await store.delete(name)
    await store.put_if_absent(name, data[:-1])


async def test_checkpoints_hold_changes_until_everything_is_due() -> None:
    checkpoints, owner = await claimed(MemoryStore(), keep=30, increments_max=3)
    engine = fed_engine(KEYS, KEYS)
    await written(engine, owner, 9)
    present = await checkpoints.list()
    lengths = [len(chain_of(one, present)) for one in reversed(present)]
    assert lengths == [1, 2, 3, 4, 1, 2, 3, 4, 1]
    assert [one.rows for one in reversed(present)] == [KEYS, 1, 1, 1, KEYS, 1, 1, 1, KEYS]
    found = await checkpoints.latest()
    assert sorted_rows(found.snapshot) == sorted_rows(engine.snapshot())
    older = await checkpoints.read(present[2])
    assert Engine.restore(engine.plan, older).cut == {"trades": KEYS + 7}
    assert await checkpoints.verify() == ()


async def test_large_changes_make_everything_due() -> None:
    _, owner = await claimed(MemoryStore())
    engine = fed_engine(KEYS, KEYS)
    await owner.write(begun(engine, owner))
    assert owner.since is not None
    feed(engine, KEYS, KEYS)
    assert (await owner.write(begun(engine, owner))).base is not None
    assert owner.since is None
    assert (await owner.write(begun(engine, owner))).base is None


async def test_a_new_owner_begins_with_everything() -> None:
    store = MemoryStore()
    _, owner = await claimed(store)
    engine = fed_engine(KEYS, KEYS)
    await written(engine, owner, 2)
    _, owner = await claimed(store, 1)
    assert owner.since is None
    assert (await owner.write(begun(engine, owner))).base is None


@settings(max_examples=9 * EXAMPLES)
@given(
    quiet=st.lists(st.integers(0, 9), min_size=8, max_size=12),
    trouble=st.sampled_from(["before", "after"]),
    keep=st.integers(1, 4),
    increments_max=st.integers(0, 3),
)
async def test_whatever_fails_to_be_stored_is_in_the_next_increment(
    quiet: list[int], trouble: str, keep: int, increments_max: int
) -> None:
    """Between two calls that fail are some, up to nine, that do not."""
    store = MemoryStore()
    engine = fed_engine(30, 30)
    twins = {30: sorted_rows(engine.snapshot())}
    _, owner = await claimed(store, keep=keep, increments_max=increments_max)
    script = chain.from_iterable([*repeat("", calls), trouble] for calls in quiet)
    owner.checkpoints.store = owner.checkpoints.manifest.store = TroubledStore(store, script)
    for _ in range(14):
        feed(engine, 30, 2)
        twins[engine.cut["trades"]] = sorted_rows(fed_engine(30, engine.cut["trades"]).snapshot())
        try:
            await owner.write(begun(engine, owner))
        except StoreError:
            continue
    checkpoints = Checkpoints(store, "test")
    present = await checkpoints.list()
    assert len(present) >= min(keep, 1)
    for one in present:
        assert sorted_rows(await checkpoints.read(one)) == twins[one.cut["trades"]]


@pytest.mark.parametrize("keep", [1, 2, 3])
async def test_bases_of_retained_checkpoints_are_retained_and_the_rest_deleted(keep: int) -> None:
    store = MemoryStore()
    checkpoints, owner = await claimed(store, keep=keep, increments_max=3)
    engine = fed_engine(KEYS, KEYS)
    for _ in range(12):
        await written(engine, owner, 1)
        present = await checkpoints.list()
        files = [part.object_name for one in present for part in one.parts]
        assert sorted(files) == await store.list("test/00000/state/")
        assert await checkpoints.verify() == ()
        assert len(present) <= 2 * 4 + keep
        roots = {chain_of(one, present)[0].name for one in present}
        assert len(roots) >= min(keep, 2) or len(present) < 5
    with pytest.raises(CheckpointError, match="delete that first"):
        await owner.delete(present[1].name)


@pytest.mark.parametrize(
    ("damaged", "left"), [("newest", KEYS + 5), ("between", KEYS + 4), ("whole", KEYS + 3)]
)
async def test_damage_costs_what_builds_on_it_and_no_more(damaged: str, left: int) -> None:
    """Two increments are on the second checkpoint of everything, which is the fourth."""

    store = MemoryStore()
    checkpoints, owner = await claimed(store, increments_max=2)
    engine = fed_engine(KEYS, KEYS)
    await written(engine, owner, 6)
    newest, between, whole, *_ = await checkpoints.list()
    bad = {"newest": newest, "between": between, "whole": whole}[damaged]
    await damage(store, bad.parts[0].object_name)
    found = await checkpoints.latest()
    assert found.checkpoint.cut == {"trades": left}
    assert any("damaged" in why or "cut" in why for why in found.damaged)
    assert Engine.restore(engine.plan, found.snapshot).cut == {"trades": left}
    assert len(await checkpoints.verify()) == 1


async def test_changes_since_what_was_not_stored_are_refused() -> None:
    _, owner = await claimed(MemoryStore())
    engine = fed_engine(KEYS, KEYS)
    other = engine.snapshot()
    pending = engine.begin_snapshot(other.number)
    while not pending.step(1000):
        pass
    with pytest.raises(CheckpointError, match=r"begin it with Owner\.since"):
        await owner.write(pending.finish())


def test_sample_of_flips_and_truncations_of_an_increment_is_detected() -> None:
    data = increment()
    decode_file(data, "increment.arrow")
    assert not list(undetected_flips(data, range(0, 8 * len(data), 331)))
    assert not list(undetected_cuts(data, range(0, len(data), 127)))


def test_commands_understand_increments(tmp_path, capfd) -> None:
    async def write() -> None:
        checkpoints = Checkpoints(DiskStore(LiveDisk(tmp_path), Chance()), "test")
        owner = await checkpoints.claim(ManualClock(), Chance())
        await written(fed_engine(KEYS, KEYS), owner, 3)

    asyncio.run(write())

    def printed(*arguments: str) -> str:
        assert main(["checkpoint", *arguments, "--dir", str(tmp_path)]) == 0
        return capfd.readouterr().out

    latest, middle, first = printed("list").splitlines()[1:]
    name = middle.partition("name=")[2].partition(" ")[0]
    assert latest.endswith(f"base={name}")
    assert "base=" not in first
    assert f"base       {name}: the files hold the changes since" in printed("show")
    assert "3 checkpoints, all whole" in printed("verify")
    assert "0 added, 0 removed, 1 changed" in printed("diff")
    exported = tmp_path / "state.csv"
    assert f"{KEYS} rows of vwap" in printed("export", "--to", str(exported))
    assert len(exported.read_text().splitlines()) == KEYS + 1
    (file,) = tmp_path.glob(f"test/00000/state/{name}-*.arrow")
    assert main(["checkpoint", "verify", str(file)]) == 0
    assert f"1 changes of {first.partition('name=')[2]} in checkpoint {name}" in (
        capfd.readouterr().out
    )


async def test_state_is_found_behind_what_other_code_has_only_begun() -> None:
    _, owner = await claimed(MemoryStore())
    for engine in (fed_engine(9, 9), fed_engine(9, 0), fed_engine(9, 0)):
        owner._stored = replace(owner._stored, name="")
        await owner.write(begun(engine, owner))
    newest, begun_before, state = owner.present
    other = replace(newest, topology_hash="other"), replace(begun_before, topology_hash="more")
    assert without_begun((*other, state), state.topology_hash) == (state,)
    assert without_begun((*other, state), "further") == (state,)
    assert without_begun((*other, state), "more") == (other[1], state)
    assert without_begun(other, "further") == other  # nothing else is there

"""Where letters and notes lie: what each form promises, and what moves with a partition."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from ripple.connectors.inputs import Inputs
from ripple.connectors.letter import QUARANTINE
from ripple.connectors.source_inputs import SourceInputs
from ripple.core.cut import Cut
from ripple.core.event_text import line_of
from ripple.engine.machine import Engine
from ripple.model.batch import Rejected
from ripple.storage.checkpoint import Checkpoints
from ripple.storage.fenced import FencedError, Journal, journal
from ripple.storage.store import DiskStore, RetryingStore
from ripple.task.dead_letters import hint_store as places
from ripple.task.dead_letters import queue
from ripple.task.dead_letters.hint_store import HintStore
from ripple.task.dead_letters.in_flight import InFlight
from ripple.task.dead_letters.log import DeadLetterLog, letters_in
from ripple.task.dead_letters.notes import NoteFile, in_flight_path
from ripple.task.dead_letters.suspicion import DEATHS_MAX, Range
from ripple.task.durable_state import DurableState
from ripple.task.lifecycle import PartitionTask
from ripple.task.owned_state import Ownership
from ripple.task.spec import TaskContext, TaskSpec
from ripple.task.task import WAITING
from ripple.testing import SimWorld, explore
from ripple.testing.sim.faults import Fault, Planned
from ripple.testing.sim.run import run
from ripple.world import LiveDisk
from ripple.world.errors import StoreError
from tests.task.holes import EXPECTED, SETTINGS_HERE, Compacted
from tests.task.lives import PLAN, outputs, written
from tests.world.clusters import in_sim_world

FORMS = ["disk", "store"]
each_form = pytest.mark.parametrize("form", FORMS)


class Owners:
    """The owners of a partition one after the other; the form of its place is the same."""

    def __init__(self, world: SimWorld, form: str) -> None:
        self.world = world
        self.form = form
        self.epoch = 0

    async def next(self) -> HintStore:
        """Return the place as the next owner has it, who knows nothing but the place."""
        self.epoch += 1
        world, of_notes = self.world, in_flight_path("vwap")
        notes = NoteFile(world.disk, of_notes) if self.form == "disk" else None
        place = HintStore(world.store, "vwap", random=world.random, notes=notes)
        await place.open(self.epoch)
        return place

    async def letters(self, version: str = "v1") -> tuple[HintStore, DeadLetterLog]:
        place = await self.next()
        return place, self.log_in(place, version)

    def log_in(self, place: HintStore, version: str = "v1") -> DeadLetterLog:
        box = place.letters()
        return DeadLetterLog(box, pipeline="vwap", version=version, clock=self.world.clock)

    async def kept(self) -> list[tuple[int, str]]:
        letters, damage = await letters_in(self.world.store, "vwap")
        assert not damage
        return [(letter.offset, letter.version) for letter in letters]


def bad(offset: int, step: str | None = None) -> Rejected:
    return Rejected(offset, None, "price is empty", b"AAPL,,1", step)


@each_form
@in_sim_world
async def test_letters_are_kept_once_whoever_owns_the_partition(world: SimWorld, form: str) -> None:
    owners = Owners(world, form)
    for offsets, new in (([3, 5], 2), ([3, 5, 9], 1), ([3, 5, 9], 0)):
        place, log = await owners.letters()
        log.begin({"trades": 0})
        assert log.write("trades", map(bad, offsets)) == new
        log.sync()
        await place.flush()
        await place.close()
        await place.close()
    assert await owners.kept() == [(3, "v1"), (5, "v1"), (9, "v1")]
    _, log = await owners.letters("v2")
    log.begin({"trades": 5})
    assert log.write("trades", map(bad, [5, 7])) == 2


@each_form
@in_sim_world
async def test_letters_that_were_flushed_outlive_their_owner(world: SimWorld, form: str) -> None:
    owners = Owners(world, form)
    place, log = await owners.letters()
    log.write("trades", [bad(3)])
    log.sync()
    await place.flush()
    log.write("trades", [bad(5)])  # and here it dies
    assert (await owners.kept())[:1] == [(3, "v1")]


@each_form
@in_sim_world
async def test_deaths_of_a_record_are_counted_over_all_owners(world: SimWorld, form: str) -> None:
    owners = Owners(world, form)

    async def die_in(first: int, end: int) -> list[Range]:
        place = await owners.next()
        life = InFlight(place.notes(), version="v1")
        pieces = life.pieces("trades", 0, 10)
        life.begin("trades", first, end)
        await place.flush()
        return pieces

    assert len(await die_in(0, 10)) == 1
    assert len(await die_in(4, 5)) == 10
    assert DEATHS_MAX == 3
    await die_in(4, 5)
    for new in ([("trades", 4)], []):
        place = await owners.next()
        life = InFlight(place.notes(), version="v1")
        assert life.newly_quarantined == new
        assert list(life.quarantined("trades")) == [4]
        await place.flush()
        life.close()
        await place.close()


@each_form
@in_sim_world
async def test_notes_stay_short_and_forget_nothing(world: SimWorld, form: str) -> None:
    owners = Owners(world, form)
    place = await owners.next()
    life = InFlight(place.notes(), version="v1", bytes_max=1000)
    for offset in range(300):
        life.begin("trades", offset, offset + 1)
        await place.flush()
    life.close()
    place = await owners.next()
    data = place.notes().read()
    assert data is not None
    assert len(data) <= 1000
    life = InFlight(place.notes(), version="v1")
    assert len(life.pieces("trades", 295, 302)) == 3, "the last one is suspect"
    if form == "store":
        assert len(world.store.image()) < 200


# --- in a store ---


@in_sim_world
async def test_owner_before_is_shut_out_and_changes_nothing(world: SimWorld) -> None:
    owners = Owners(world, "store")
    former, log = await owners.letters()
    life = InFlight(former.notes(), version="v1")
    await former.flush()
    latter, other = await owners.letters()
    before = dict(world.store.image())
    for act in (
        lambda: log.write("trades", [bad(3)]),
        lambda: life.begin("trades", 0, 1),
    ):
        act()
        log.sync()
        with pytest.raises(FencedError, match="an owner with epoch 2 has opened"):
            await former.flush()
    await former.close()
    assert world.store.image() == before
    with pytest.raises(FencedError):
        await HintStore(world.store, "vwap", random=world.random).open(2)
    assert other.write("trades", [bad(3)]) == 1
    other.sync()
    await latter.flush()
    assert await owners.kept() == [(3, "v1")]


@in_sim_world
async def test_without_the_fence_the_owner_before_is_not_told(world: SimWorld) -> None:
    former = Journal(world.store, "a/", guards=lambda safeguard: safeguard != "journal_fence")
    await former.open(1, world.random)
    await Journal(world.store, "a/").open(2, world.random)
    await former.add(b"lost")
    assert b"lost" not in [one.data for one in await former.read()]


@in_sim_world
async def test_put_that_is_repeated_after_a_lost_reply_is_one_letter(world: SimWorld) -> None:
    owners = Owners(world, "store")

    class Forgetful:
        """Stores an object and says that nobody knows."""

        def __getattr__(self, name: str) -> Any:
            return getattr(world.store, name)

        async def put_if_absent(self, name: str, data: bytes) -> bool:
            await world.store.put_if_absent(name, data)
            if data.find(b"AAPL") >= 0 and not lost:
                lost.append(name)
                raise StoreError("the reply was lost", done=None)
            return await world.store.put_if_absent(name, data)

    lost: list[str] = []
    place = HintStore(Forgetful(), "vwap", random=world.random)
    await place.open(1)
    log = owners.log_in(place)
    log.write("trades", [bad(3)])
    log.sync()
    with pytest.raises(StoreError):
        await place.flush()
    await place.flush()
    assert await owners.kept() == [(3, "v1")]
    assert lost


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda data: data[:-1], "checksum does not match"),
        (lambda data: data[:10], "truncated to 10 bytes"),
        (lambda data: data[:40] + bytes([data[40] ^ 1]) + data[41:], "checksum does not match"),
        (lambda _: None, "2.journal is missing"),
    ],
)
@pytest.mark.parametrize("kind", ["letters", "notes"])
@in_sim_world
async def test_an_object_that_is_damaged_costs_what_was_in_it_and_ends_no_life(
    world: SimWorld, kind: str, damage: Callable[[bytes], bytes | None], said: str
) -> None:
    owners = Owners(world, "store")
    place, log = await owners.letters()
    life = InFlight(place.notes(), version="v1")
    for offset in (3, 5):
        life.begin("trades", offset, offset + 1)
        log.write("trades", [bad(offset), bad(offset - 1, QUARANTINE)])
        log.sync()
        await place.flush()
    store, name = world.store, f"vwap/00000/{kind}/0000000000000002.journal"
    data = damage(store.image()[name])
    await store.delete(name)
    if data is not None:
        await store.put_if_absent(name, data)
    place, log = await owners.letters()
    life = InFlight(place.notes(), version="v1", lettered=log.quarantined)
    told = "".join(line_of(event) or "" for event in life.remarks())
    if kind == "letters":
        assert (len(log.damage), said in log.damage[0], "lost" in told) == (1, True, False)
        assert log.write("trades", map(bad, [3, 5])) == 1  # of the replayed ones
    else:
        assert (log.damage, said in told, "deaths are counted anew" in told) == ((), True, True)
        assert set(life.quarantined("trades")) == {2, 4}  # by their letters
    place.mend()
    await place.flush()
    assert sorted(offset for offset, _ in await owners.kept())[-2:] == [4, 5]
    again = InFlight((await owners.next()).notes(), version="v1")
    assert not any("lost" in (line_of(event) or "") for event in again.remarks())


@in_sim_world
async def test_journal_begins_with_its_last_whole_object_and_forgets_those_before(
    world: SimWorld,
) -> None:
    journal = Journal(world.store, "a/")
    assert await journal.open(1, world.random) == []
    for number in range(200):
        await journal.add(b"%d" % number, is_whole=number % 10 == 9)
    await journal.add(b"end")
    assert len(world.store.image()) < 100
    found = await Journal(world.store, "a/").open(2, world.random)
    assert [one.data for one in found] == [b"199", b"end"]


@in_sim_world
async def test_journal_goes_on_after_a_store_could_not_delete_all_that_is_passed(
    world: SimWorld,
) -> None:
    class Reluctant:
        """Refuses one deletion, at once, while others take their time."""

        refused = ""
        under_way = 0

        def __getattr__(self, name: str) -> Any:
            return getattr(world.store, name)

        async def delete(self, name: str) -> None:
            if not self.refused:
                self.refused = name
                raise StoreError("it is not deleted", done=False)
            self.under_way += 1
            await world.store.delete(name)
            self.under_way -= 1

    store = Reluctant()
    ours = Journal(store, "a/")
    await ours.open(1, world.random)
    for _ in range(journal.FORGET_AT):
        await ours.add(b"passed")
    await ours.add(b"one", is_whole=True)  # readable, despite older objects
    assert store.refused
    assert store.under_way == 0
    await ours.add(b"two")
    for owner in (ours, Journal(store, "a/")):
        assert [one.data for one in await owner.read()] == [b"one", b"two"]
    assert store.refused in world.store.image()
    for _ in range(journal.FORGET_AT):
        await ours.add(b"three", is_whole=True)
    assert store.refused not in world.store.image()


@in_sim_world
async def test_letters_that_cannot_be_read_are_passed_over_and_those_behind_them_are_kept(
    world: SimWorld, tmp_path: Path
) -> None:
    """Whoever waits for the store for days does not wait for one object of it."""
    disk = DiskStore(LiveDisk(tmp_path), world.random)
    said: list[str] = []
    store = RetryingStore(disk, world.clock, world.random, WAITING, failed=said.append)

    async with asyncio.timeout(60):
        ours = Journal(store, "a/")
        await ours.open(1, world.random)
        for data in (b"one", b"two", b"three"):
            await ours.add(data)
        lost = tmp_path / "a" / f"{3:016d}.journal"
        lost.unlink()
        lost.mkdir()
        theirs = Journal(store, "a/")
        assert await theirs.newest_epoch() == 1
        found = await theirs.open(2, world.random)
        assert [one.data for one in found] == [b"", b"one", b"three"]
        assert [lost.name in one and "cannot be read" in one for one in theirs.damage] == [True]
        next_one = tmp_path / "a" / f"{theirs._number + 1:016d}.journal"
        next_one.mkdir()
        with pytest.raises(FencedError):
            await theirs.add(b"four")
    assert not said


@in_sim_world
async def test_owners_that_add_nothing_leave_nothing_to_be_read(world: SimWorld) -> None:
    for epoch in range(200):
        assert len(await Journal(world.store, "a/").open(epoch, world.random)) <= 1
    assert len(world.store.image()) < 100
    journal = Journal(world.store, "a/")
    await journal.open(200, world.random)
    await journal.add(b"one")
    for epoch in range(201, 210):
        found = await Journal(world.store, "a/").open(epoch, world.random)
        assert b"".join(one.data for one in found) == b"one"


@in_sim_world
async def test_letters_of_weeks_are_read_as_a_few_objects_and_the_oldest_go(
    world: SimWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(places, "LETTER_OBJECTS_FEW", 10)
    monkeypatch.setattr(places, "LETTER_OBJECTS_MAX", 10)
    monkeypatch.setattr(queue, "LETTER_BYTES_MAX", 12_000)  # some 115 letters
    monkeypatch.setattr(queue, "PIECE_BYTES", 100)
    owners = Owners(world, "store")
    for first in range(0, 400, 5):
        place, log = await owners.letters()
        for offset in range(first, first + 5):
            again = [offset - 1] if 0 < offset == first else []  # by the owner before
            assert log.write("trades", map(bad, [*again, offset])) == 1
            log.sync()
            await place.flush()
        await place.close()
        kept = [offset for offset, _ in await owners.kept()]
        assert kept == list(range(first + 5 - len(kept), first + 5))
        assert min(first + 5, 110) <= len(kept) < 130
    letters = [name for name in world.store.image() if "/letters/" in name]
    assert len(letters) < journal.FORGET_AT + 2 * 10
    there = await Journal(world.store, "vwap/00000/letters/").read()
    assert len(there) <= 10 + 2


@in_sim_world
async def test_letters_take_few_objects_and_are_written_again_a_few_times_at_most(
    world: SimWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_bytes: list[int] = []
    put = world.store.put_if_absent

    async def counted(name: str, data: bytes) -> bool:
        put_bytes.append(len(data))
        return await put(name, data)

    monkeypatch.setattr(world.store, "put_if_absent", counted)
    for name, few in (("LETTER_OBJECTS_FEW", 4), ("LETTER_OBJECTS_MAX", 40)):
        monkeypatch.setattr(places, name, few)
    monkeypatch.setattr(journal, "FORGET_AT", 4)
    place, log = await Owners(world, "store").letters()
    most: list[int] = []
    for first in range(0, 1200, 200):
        most.append(0)
        for offset in range(first, first + 200):
            log.write("trades", [bad(offset)])
            log.sync()
            await place.flush()
            most[-1] = max(most[-1], len(world.store.image()))
    notes = 1
    assert most[0] <= 4 + 4 + notes, "while there are few, as a reader likes it"
    assert max(most) <= 40 + 4 + notes
    singles = sum(sorted(put_bytes)[:1200])
    assert sum(put_bytes) < (2 + places.AGAIN_TIMES_MAX) * singles


@in_sim_world
async def test_letters_that_come_one_by_one_take_the_memory_of_their_bytes(world: SimWorld) -> None:
    """A batch of one row weighs 8 to 11 kB in memory, more than its ``nbytes``."""
    owners = Owners(world, "store")
    place, log = await owners.letters()
    box = place.letters()
    for offset in range(1000):
        log.write("trades", [bad(offset)])
        log.sync()
    await place.flush()
    pieces = [*box.batches()]
    assert sum(map(len, pieces)) == 1000
    assert len(pieces) < 1000 / queue.PIECES_LOOSE_MAX + queue.PIECES_LOOSE_MAX


@in_sim_world
async def test_letters_synced_together_are_one_object(world: SimWorld) -> None:
    owners = Owners(world, "store")
    place, log = await owners.letters()
    before = len(world.store.image())
    for offset in range(100):
        log.write("trades", [bad(offset)])
        log.sync()
    await place.flush()
    assert len(await owners.kept()) == 100
    assert len(world.store.image()) - before == 1


# --- lives ---


def task_over(inputs: Inputs, world: SimWorld, state: DurableState) -> PartitionTask[TaskSpec]:
    spec = TaskSpec(PLAN, inputs, outputs(world))
    return PartitionTask(spec, state, TaskContext(settings=SETTINGS_HERE))


async def live(world: SimWorld, block_rows: int = 7) -> PartitionTask[TaskSpec]:
    place = HintStore(world.store, PLAN.name, random=world.random)
    inputs = SourceInputs(Compacted(block_rows))
    state = DurableState(Checkpoints(world.store, PLAN.name), world, Ownership(place=place))
    one = task_over(inputs, world, state)
    await one.run()
    return one


@in_sim_world
async def test_notes_are_of_a_life_once_they_are_there(world: SimWorld) -> None:
    class Away(HintStore):
        async def flush(self) -> None:
            raise StoreError("the store is away", done=False)

    found = []
    for kind in (Away, HintStore):
        state = DurableState(
            Checkpoints(world.store, PLAN.name),
            world,
            Ownership(place=kind(world.store, PLAN.name, random=world.random)),
        )
        one = task_over(SourceInputs(Compacted(7)), world, state)
        with suppress(StoreError):
            await one.run()
        found.append(state.has_noted)
    assert found == [False, True]


@pytest.mark.parametrize(("end", "noted"), [(0, False), (40, True)])
@in_sim_world
async def test_lives_killed_on_a_quiet_topic_make_nobody_careful_of_what_comes_then(
    world: SimWorld, end: int, noted: bool
) -> None:
    class Quiet(SourceInputs):
        """Had nothing behind ``end`` when it was opened."""

        async def bounds(self) -> tuple[Cut, Cut]:
            return (await super().bounds())[0], {"trades": end}

    place = HintStore(world.store, PLAN.name, random=world.random)
    for epoch in (1, 2):
        await place.open(epoch)
        InFlight(place.notes(), version=PLAN.topology_hash, shown={"trades": 0}, is_calm=True)
        await place.flush()
    state = DurableState(
        Checkpoints(world.store, PLAN.name), world, Ownership(epoch=3, place=place)
    )
    inputs = Quiet(Compacted(7))
    await task_over(inputs, world, state).run()
    assert (b'"begin"' in (place.notes().read() or b"")) == noted


async def crashed(world: SimWorld, seed: int) -> None:
    one = await live(world, block_rows=3 + seed % 9)
    assert {
        "written": written(world),
        "counters": one.engine.counters,
        "cut": one.engine.cut,
    } == EXPECTED
    letters, _ = await letters_in(world.store, PLAN.name)
    assert [letter.offset for letter in letters] == [Compacted(7).bad]


def test_lives_whose_letters_are_in_a_store_may_crash_anywhere() -> None:
    assert explore(crashed, seeds=range(25)).lives > 50


def test_record_that_kills_each_owner_is_set_aside_by_the_one_after(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    killer = int(Compacted(7).offsets[10])
    worlds: list[SimWorld] = []
    apply = Engine.apply

    def deadly(
        engine: Engine, name: str, batch: Any, next_offset: int, *rest: Any, **named: Any
    ) -> Any:
        if killer in rest[0]:
            worlds[-1].effects.die(Fault(0, 0, "kill_before", 0))
        return apply(engine, name, batch, next_offset, *rest, **named)

    monkeypatch.setattr(Engine, "apply", deadly)

    async def scenario(world: SimWorld, _: int) -> None:
        worlds.append(world)
        one = await live(world)
        assert (one.engine.counters.consumed, one.engine.counters.dead_lettered) == (41, 2)
        letters, _ = await letters_in(world.store, PLAN.name)
        assert [(one.offset, one.step) for one in letters] == [
            (killer, QUARANTINE),
            (Compacted(7).bad, None),
        ]

    done = run(scenario, 0, Planned(()))
    assert done.error is None
    assert done.lives == DEATHS_MAX + 1

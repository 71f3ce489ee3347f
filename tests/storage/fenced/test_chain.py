"""A chain whose content is a plain text, with writers who all may propose the next entry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from ripple.storage.fenced import Chain, DamagedError, Entry, FencedError, Journal, journal
from ripple.storage.store import CountedStore, MemoryStore
from ripple.testing import Chance
from ripple.world import ObjectStore
from tests.storage.fenced.text import Text


class StoreWithPause(MemoryStore):
    """Runs ``meanwhile`` once, after a list or before a put of the caller."""

    def __init__(self, at: str) -> None:
        super().__init__()
        self._at = at
        self.meanwhile: Callable[[], Awaitable[None]] | None = None

    async def list(self, prefix: str) -> list[str]:
        names = await super().list(prefix)
        await self._pause("list")
        return names

    async def put_if_absent(self, name: str, data: bytes) -> bool:
        await self._pause("put")
        return await super().put_if_absent(name, data)

    async def _pause(self, at: str) -> None:
        if at == self._at and self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            await meanwhile()


def chain_in(store: ObjectStore, *, entries_kept: int = 8) -> Chain[str]:
    return Chain(store, "assign/", Text(), entries_kept=entries_kept)


async def propose(chain: Chain[str], who: str, text: str) -> Entry[str] | None:
    """Add an entry after the newest; return what is there under its number."""
    reading = await chain.newest()
    return await chain.create(reading.next(who, text, chain.codec))


async def test_of_two_proposals_for_a_number_one_is_there_for_both() -> None:
    store = MemoryStore()
    one, other = chain_in(store), chain_in(store)
    seen = await one.newest()
    first = await one.create(seen.next("a", "to b", one.codec))
    second = await other.create(seen.next("b", "to c", other.codec))
    assert first is not None
    assert second is not None
    assert (first.content, second.content) == ("to b", "to b")
    assert second.owner == "a"


async def test_empty_chain_begins_at_its_boundary_in_any_race() -> None:
    chain = chain_in(MemoryStore(), entries_kept=2)
    seen = await chain.newest()
    await chain.begin_at(5)
    early = await chain.create(seen.next("a", "the first", chain.codec))
    assert early is not None
    with pytest.raises(FencedError, match="came too late"):
        await chain.check_newest(early)
    for number in range(5, 12):
        made = await propose(chain, "a", f"version {number}")
        assert made is not None
        assert made.number == number
        await chain.check_newest(made)
        assert await chain.problems() == ()
        await chain.forget(made)
    assert (await chain.numbers())[0] == 9


async def test_each_entry_holds_the_checksum_of_the_one_before() -> None:
    chain = chain_in(MemoryStore())
    for number in range(1, 4):
        await propose(chain, "a", f"version {number}")
    entries = [await chain.get(number) for number in range(1, 4)]
    assert [e.previous for e in entries if e] == ["", *(e.checksum for e in entries[:2] if e)]
    assert await chain.problems() == ()


async def test_a_writer_that_slept_through_a_deletion_does_not_reopen_the_chain() -> None:
    store = MemoryStore()
    chain = chain_in(store, entries_kept=1)
    asleep = (await chain.newest()).next("late", "old news", chain.codec)
    for number in range(1, 6):
        entry = await propose(chain, "a", f"version {number}")
        assert entry is not None
        await chain.forget(entry)
    assert await chain.get(1) is None
    there = await chain_in(store).create(asleep)
    assert there is not None, "the name was free again"
    with pytest.raises(FencedError, match="too late"):
        await chain.check_newest(there)
    newest = (await chain.newest()).entry
    assert newest is not None
    assert newest.content == "version 5"


async def test_a_writer_looks_for_its_entry_before_and_lists_only_where_that_is_gone() -> None:
    store = CountedStore(MemoryStore())
    chain = chain_in(store, entries_kept=1)
    first = await propose(chain, "a", "version 1")
    assert first is not None
    late = replace(first, number=2, previous=first.checksum, content="late")
    there = await chain.create(late)
    assert there is late
    before = dict(store.requests)
    await chain.check_next(late, first)
    assert dict(store.requests - Counter(before)) == {"get": 1}
    for number in range(3, 9):
        entry = await propose(chain, "b", f"version {number}")
        assert entry is not None
        await chain.forget(entry)
    assert await chain.create(late) is late, "the name was free again"
    with pytest.raises(FencedError, match="too late"):
        await chain.check_next(late, first)


async def test_a_reader_that_slept_does_not_believe_an_entry_that_came_too_late() -> None:
    store = StoreWithPause("list")
    chain = chain_in(store, entries_kept=1)
    await propose(chain, "a", "version 1")
    late = (await chain.newest()).next("late", "old news", chain.codec)
    await propose(chain, "a", "version 2")

    async def meanwhile() -> None:
        for number in range(3, 6):
            entry = await propose(chain, "a", f"version {number}")
            assert entry is not None
            await chain.forget(entry)
        assert await chain_in(store).create(late) is late, "the name is taken"

    store.meanwhile = meanwhile
    newest = (await chain_in(store).newest()).entry
    assert newest is not None
    assert newest.content == "version 5"


async def test_an_owner_that_slept_while_it_opened_a_journal_has_the_objects_added_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(journal, "FORGET_AT", 2)
    store = StoreWithPause("put")
    former = Journal(store, "a/")
    await former.open(1, Chance())

    async def meanwhile() -> None:
        for number in range(4):
            await former.add(b"%d" % number, is_whole=True)
        assert "a/0000000000000002.journal" not in await store.list("a/")

    store.meanwhile = meanwhile
    found = await Journal(store, "a/").open(2, Chance())
    assert [one.data for one in found] == [b"3"]
    with pytest.raises(FencedError):
        await former.add(b"4")


@pytest.mark.parametrize("bit", range(0, 8 * 200, 37))
async def test_a_changed_bit_is_damage_and_the_entry_before_is_used(bit: int) -> None:
    store = MemoryStore()
    chain = chain_in(store)
    await propose(chain, "a", "first")
    await propose(chain, "a", "second")
    name = chain.name_of(2)
    data = bytearray(await store.get(name, length_max=1 << 20) or b"")
    data[bit // 8 % len(data)] ^= 1 << bit % 8
    await store.delete(name)
    await store.put_if_absent(name, bytes(data))
    with pytest.raises(DamagedError, match=name):
        await chain.get(2)
    reading = await chain.newest()
    assert reading.entry is not None
    assert (reading.entry.content, reading.newest_number) == ("first", 2)
    assert reading.next("b", "third", chain.codec).previous == ""
    assert any(name in problem for problem in await chain.problems())


async def test_a_missing_entry_is_a_problem_of_the_chain() -> None:
    store = MemoryStore()
    chain = chain_in(store)
    for number in range(1, 4):
        await propose(chain, "a", f"version {number}")
    await store.delete(chain.name_of(2))
    assert await chain.problems() == (f"{chain.name_of(2)} is missing",)

"""The chain of assignments: one proposer wins each version, whatever the store does."""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b

import pytest

import ripple.storage.fenced.chain
from ripple.control.assignment import AssignmentChain, AssignmentError, Share, Stage, empty
from ripple.core.errors import LimitError
from ripple.storage.fenced import ChainError, Entry
from ripple.storage.fenced.entry import FORMAT
from ripple.storage.store import MemoryStore
from ripple.testing import explore
from ripple.testing.sim.faults import Drawn, Faults
from ripple.testing.sim.run import run
from ripple.world import StoreError
from tests.control.assignment import scenarios
from tests.control.assignment.examples import member
from tests.control.assignment.scenarios import next_of
from tests.examples import EXAMPLES, SAMPLED


async def test_of_two_who_propose_a_version_one_has_won() -> None:
    store = MemoryStore()
    one, other = AssignmentChain(store, "one"), AssignmentChain(store, "other")
    seen = await one.newest()
    assert await one.propose(seen, next_of(seen, "w1"))
    assert not await other.propose(seen, next_of(seen, "w2"))
    again = await other.newest()
    assert again.entry is not None
    assert again.entry.owner == "one"
    assert await other.propose(again, next_of(again, "w2"))
    assert [version.version for version in await one.history()] == [1, 2]
    assert await one.problems() == ()


async def test_equal_proposal_that_is_second_has_not_won() -> None:
    store = MemoryStore()
    one, other = AssignmentChain(store, "one"), AssignmentChain(store, "other")
    seen = await one.newest()
    assert await one.propose(seen, next_of(seen, "w1"))
    assert not await other.propose(seen, next_of(seen, "w1"))


class LossyStore(MemoryStore):
    """Stores, and loses the reply."""

    async def put_if_absent(self, name: str, data: bytes) -> bool:
        await super().put_if_absent(name, data)
        raise StoreError("no reply", done=None)


async def test_a_lost_reply_to_an_own_success_is_a_success() -> None:
    chain = AssignmentChain(LossyStore(), "one")
    seen = await chain.newest()
    assert await chain.propose(seen, next_of(seen, "w1"))
    assert not await chain.propose(seen, replace(next_of(seen, "w1"), cause="another"))


async def test_a_version_that_breaks_a_rule_is_not_written() -> None:
    store = MemoryStore()
    chain = AssignmentChain(store, "one")
    seen = await chain.newest()
    assert await chain.propose(seen, next_of(seen, "w1"))
    seen = await chain.newest()
    good = next_of(seen, "w1")
    with pytest.raises(AssignmentError, match="w9"):
        await chain.propose(seen, replace(good, shares=(Share("w9/0", 2), *good.shares[1:])))
    with pytest.raises(AssignmentError, match="does not follow what was read"):
        await chain.propose(seen, replace(good, version=3, shares=(Share(None, 0),) * 3))
    assert (await chain.newest()).newest_number == 1


async def test_a_version_that_does_not_fit_into_an_entry_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ripple.storage.fenced.chain, "BYTES_MAX", 1 << 20)

    chain = AssignmentChain(MemoryStore(), "one")
    seen = await chain.newest()
    with pytest.raises(LimitError, match="use fewer partitions"):
        await chain.propose(seen, replace(next_of(seen, "w1"), cause="x" * (1 << 20)))


async def written(store: MemoryStore, versions: int) -> AssignmentChain:
    chain = AssignmentChain(store, "one")
    for _ in range(versions):
        seen = await chain.newest()
        assert await chain.propose(seen, next_of(seen, "w1"))
    return chain


async def overwrite(store: MemoryStore, name: str, data: bytes) -> None:
    await store.delete(name)
    await store.put_if_absent(name, data)


@pytest.mark.parametrize("bit", range(0, 8 * 700, 97))
async def test_a_flipped_bit_is_found_and_everything_is_given_anew(bit: int) -> None:
    store = MemoryStore()
    chain = await written(store, 2)
    name = "assign/0000000000000002.json"
    data = bytearray(await store.get(name, length_max=1 << 20) or b"")
    data[bit // 8 % len(data)] ^= 1 << bit % 8
    await overwrite(store, name, bytes(data))
    seen = await chain.newest()
    assert seen.entry is not None
    assert (seen.entry.number, seen.newest_number) == (1, 2)
    assert name in seen.damaged[0]
    with pytest.raises(AssignmentError, match="w1 has come as incarnation 1"):
        await chain.propose(seen, next_of(seen, "w1"))
    shares = tuple(Share("w1/0", 3) if s.owner else s for s in seen.entry.content.shares)
    anew = replace(seen.entry.content, version=3, members=(member("w1", 3),), shares=shares)
    assert await chain.propose(seen, anew)


async def test_a_version_of_a_newer_release_is_refused_and_nothing_proposed_over_it() -> None:
    store = MemoryStore()
    chain = await written(store, 1)
    name = "assign/0000000000000001.json"

    class Newer:
        def to_fields(self, content: int) -> dict[str, object]:
            return {"form": content + 1, "version": 1}

        def from_fields(self, fields: object) -> int:
            return 0

    await overwrite(store, name, Entry(1, "", "", 2, Newer()).encoded)
    with pytest.raises(AssignmentError, match="has form 3"):
        await chain.newest()
    newer = Entry(1, "", "", 1, Newer()).encoded.partition(b"\n")[2]
    whole = newer.replace(f'"format": {FORMAT}'.encode(), b'"format": 9').rstrip(b"\n")
    checksum = blake2b(whole, digest_size=32).hexdigest().encode()
    await overwrite(store, name, checksum + b"\n" + whole + b"\n")
    with pytest.raises(ChainError, match="upgrade it"):
        await chain.newest()


async def test_a_version_under_another_number_is_refused() -> None:
    store = MemoryStore()
    chain = await written(store, 1)
    seen = await chain.newest()
    assert seen.entry is not None
    wrong = replace(seen.entry, number=2, content=empty([Stage("trades", 3)]))
    await store.put_if_absent("assign/0000000000000002.json", wrong.encoded)
    with pytest.raises(AssignmentError, match="holds version 0"):
        await chain.newest()


def test_proposers_survive_a_failing_store_and_kills() -> None:
    report = explore(scenarios.proposers, seeds=range(75 * EXAMPLES // SAMPLED))
    assert report.landed.total() > 50, report


# Where the search begins: the seed that found it out when this was written.
SAFEGUARDS = {"fence": 0, "check_newest": 0, "put_if_absent": 0, "read_again": 2606}


@pytest.mark.parametrize("safeguard", SAFEGUARDS)
def test_missing_safeguard_is_found_out(safeguard: str) -> None:
    for seed in (SAFEGUARDS[safeguard], *range(1000)):
        done = run(
            scenarios.proposers,
            seed,
            Drawn(seed, Faults()),
            check=scenarios.check,
            without=(safeguard,),
        )
        if done.error is not None:
            return
    raise AssertionError(f"nobody misses {safeguard}")


async def test_history_tells_why_and_leaves_out_what_cannot_be_read() -> None:
    store = MemoryStore()
    chain = await written(store, 5)
    await overwrite(store, "assign/0000000000000003.json", b"damaged")
    found = await chain.history()
    assert [(version.version, version.cause) for version in found] == [
        (number, "w1 wants it") for number in (1, 2, 4, 5)
    ]


async def test_old_versions_go_and_who_slept_through_it_does_not_bring_one_back() -> None:
    store = MemoryStore()
    chain = AssignmentChain(store, "one", versions_kept=2)
    asleep = await chain.newest()
    for _ in range(9):
        seen = await chain.newest()
        assert await chain.propose(seen, next_of(seen, "w1"))
        await chain.forget(await chain.newest())
    assert len(await chain.history()) < 5
    late = AssignmentChain(store, "late", versions_kept=2)
    assert not await late.propose(asleep, next_of(asleep, "w2"))
    assert (await chain.newest()).newest_number == 9
    assert 1 not in [version.version for version in await chain.history()]
    assert await chain.problems() == ()

"""Coordinators that all propose, over a store that fails, and are killed at any effect."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING

from ripple.control.assignment import Assignment, AssignmentChain, Share, Stage, empty
from ripple.control.assignment.rules import check_follows
from ripple.storage.fenced import Reading
from ripple.world import StoreError
from tests.control.assignment.examples import member

if TYPE_CHECKING:
    from ripple.testing import SimWorld

VERSIONS = 12
KEPT = 1
TRIES = 60


def next_of(reading: Reading[Assignment], who: str) -> Assignment:
    """Give the next partition to whoever proposes."""
    before = reading.entry.content if reading.entry else empty([Stage("trades", 3)])
    version = reading.newest_number + 1
    partition = version % 3
    shares = list(before.shares)
    members = {one.id: one for one in before.members}
    members.setdefault(who, member(who, version))
    shares[partition] = Share(f"{who}/0", version)
    return replace(
        before, version=version, cause=f"{who} wants it", shares=tuple(shares)
    ).with_members(members.values())


async def proposers(world: SimWorld, seed: int) -> None:
    """Three propose until there are versions enough; each version is one proposer's, for good."""
    history: dict[int, Assignment] = world.witness.setdefault("history", {})

    async def propose(who: str) -> None:
        chain = AssignmentChain(
            world.store,
            f"{who} {world.effects.life}",
            versions_kept=KEPT,
            guards=world.guards,
        )
        for _ in range(TRIES):
            await world.clock.sleep(world.random.below(200) / 1000)
            try:
                reading = await chain.newest()
                believe(reading)
                if reading.newest_number >= VERSIONS:
                    return
                # It sleeps between reading and proposing: others propose and forget meanwhile.
                await world.clock.sleep(world.random.below(4) * world.random.below(1500) / 1000)
                after = next_of(reading, who)
                if await chain.propose(reading, after):
                    was = history.setdefault(after.version, after)
                    assert was == after, f"two have won version {after.version}"
                    await chain.forget(await chain.newest())
            except StoreError:
                assert world.effects.landed, "the store has failed by itself"
                await world.clock.sleep(1)
        assert world.effects.landed, "they do not come to an end"
        raise StoreError("gave up", done=None)

    def believe(reading: Reading[Assignment]) -> None:
        if reading.entry is not None:
            now = reading.entry.content
            was = history.setdefault(now.version, now)
            assert was == now, f"version {now.version} was another"
            before = history.get(now.version - 1)
            if before is not None:
                check_follows(before, now)

    await asyncio.gather(*(propose(f"c{number}") for number in range(3)))


async def check(world: SimWorld, seed: int) -> None:
    """What is in the store, is a chain, and holds what was believed."""
    chain = AssignmentChain(world.store, versions_kept=KEPT)
    assert await chain.problems() == ()
    reading = await chain.newest()
    history = world.witness.get("history", {})
    assert reading.newest_number >= max(history, default=0), "a version is gone"


setattr(proposers, "check", check)  # noqa: B010 - for the explorer, which looks there

"""Standbys compute two at a time; one that waits lets others compute."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar, TypeVarTuple

from worker.engine.concurrency import FOLLOWERS_AT_ONCE, ConcurrencyLimit

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Counting:
    """An executor whose works take a while; most: how many it had at once."""

    def __init__(self) -> None:
        self.now = self.most = 0

    async def run(self, work: Callable[[*Ts], T], *args: *Ts) -> T:
        self.now += 1
        self.most = max(self.most, self.now)
        await asyncio.sleep(0)
        self.now -= 1
        return work(*args)


async def test_as_many_followers_compute_at_once_as_have_a_turn() -> None:
    turns, counting = ConcurrencyLimit(), Counting()
    standbys = turns.for_standbys(counting)
    async with turns.followers:  # one applies a batch meanwhile
        done = await asyncio.gather(*(standbys.run(abs, -each) for each in range(5)))
    assert counting.most == FOLLOWERS_AT_ONCE - 1
    assert done == [0, 1, 2, 3, 4]

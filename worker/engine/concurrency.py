"""Whose turn it is in a process: partitions that get ready give way to those that are live."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar, TypeVarTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.world.ports import Executor

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

FOLLOWERS_AT_ONCE = 2
HAND_OVERS_AT_ONCE = 2  # one computes while the other waits for the disk


class ConcurrencyLimit:
    """The turns of one process.

    followers: held by one that restores or applies anything; of many that move here together two
    compute at once, while all of them wait for stores and inputs.
    hand_overs: held from before the owner before is stopped until the next one goes on, so that a
    partition's pause is its own, and not that of all that move here.
    """

    def __init__(self) -> None:
        self.followers = asyncio.Semaphore(FOLLOWERS_AT_ONCE)
        self.hand_overs = asyncio.Semaphore(HAND_OVERS_AT_ONCE)

    def beside(self, executor: Executor) -> Executor:
        """Return an executor for followers, each of whose works has its turn."""
        return _InTurn(executor, self.followers)


class _InTurn:
    def __init__(self, executor: Executor, turn: asyncio.Semaphore) -> None:
        self._executor, self._turn = executor, turn

    async def run(self, work: Callable[[*Ts], T], *args: *Ts) -> T:
        async with self._turn:
            return await self._executor.run(work, *args)

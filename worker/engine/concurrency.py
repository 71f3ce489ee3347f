"""Limits on concurrent work in a process: standbys that catch up yield to live partitions."""

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
    """Semaphores of one process.

    followers: held while a standby restores or applies anything: of many that move here at once,
    two compute, while all of them may wait for stores and inputs. hand_overs: held from before the
    previous owner stops until the next one resumes, so that a partition's pause does not grow with
    the number of partitions that move here.
    """

    def __init__(self) -> None:
        self.followers = asyncio.Semaphore(FOLLOWERS_AT_ONCE)
        self.hand_overs = asyncio.Semaphore(HAND_OVERS_AT_ONCE)

    def for_standbys(self, executor: Executor) -> Executor:
        """Return an executor for standbys: each job takes the semaphore."""
        return _InTurn(executor, self.followers)


class _InTurn:
    def __init__(self, executor: Executor, turn: asyncio.Semaphore) -> None:
        self._executor, self._turn = executor, turn

    async def run(self, work: Callable[[*Ts], T], *args: *Ts) -> T:
        async with self._turn:
            return await self._executor.run(work, *args)

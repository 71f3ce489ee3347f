"""Concurrent work in a process: jobs one after the other, and limits on concurrent work."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar, TypeVarTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

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


class BackgroundJob:
    """A sequence of jobs: each starts when the one before has ended."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    def begin(self, work: Callable[[], Coroutine[None, None, None]]) -> None:
        """Start this job once the one before has ended, which is not cancelled."""
        self._task = asyncio.get_running_loop().create_task(_after(self._task, work))

    def cancel(self) -> None:
        """Cancel the running job, or the one that waits for it."""
        if self._task is not None:
            self._task.cancel()

    async def ended(self) -> None:
        """Wait until all jobs have ended."""
        while self._task is not None and not self._task.done():
            await asyncio.wait([self._task])


async def _after(
    before: asyncio.Task[None] | None, work: Callable[[], Coroutine[None, None, None]]
) -> None:
    is_cancelled = False
    while before is not None and not before.done():
        try:
            await asyncio.wait([before])
        except asyncio.CancelledError:
            is_cancelled = True
            before.cancel()
    if is_cancelled:
        raise asyncio.CancelledError
    await work()

"""What a process hosts: partitions of any stage, each with its own tasks, and what they say."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    Work: TypeAlias = "Coroutine[None, None, None] | Callable[[], Coroutine[None, None, None]]"


@dataclass(frozen=True, slots=True)
class TaskHealth:
    """Where a partition stands in this process.

    is_live: it is owned, and has caught up. behind: how many commits a follower lacks; None of who
    is no follower, or does not know yet. failure: why it does not get on; None if it does. events,
    rows_out, checkpoints: what its lives in this process have applied, written and stored.
    is_spent: whether its owner has no epoch left to try with.
    """

    is_live: bool = False
    behind: int | None = None
    failure: str | None = None
    epoch: int | None = None
    events: int = 0
    rows_out: int = 0
    checkpoints: int = 0
    is_spent: bool = False

    @property
    def has_state(self) -> bool:
        """Whether it is owned or followed, with its state restored."""
        return self.is_live or self.behind is not None


class TaskHandle(Protocol):
    """One partition in this process. It does nothing before it is told to follow, or to own.

    Every call returns at once. What was being done ends before what is asked for begins. What
    fails is tried again after growing pauses; nothing that it does makes a call raise.
    """

    @property
    def standing(self) -> TaskHealth:
        """How it stands now."""
        ...

    def follow(self) -> None:
        """Get ready to own it, without changing anything: its owner goes on."""
        ...

    def own(self, since: int, *, is_handed_over: bool = False) -> None:
        """Own it since this version of the assignment, with all that a follower has got ready.

        is_handed_over: whether the owner before goes on until this one shuts it out.
        """
        ...

    def give_way(self) -> None:
        """Go on as the owner until the next one has shut this one out; told to own, once more."""
        ...

    def store(self) -> None:
        """Store a checkpoint soon."""
        ...

    def leave(self) -> None:
        """Complete the batch, commit, store what there is, and end."""
        ...

    def drop(self) -> None:
        """End before the next effect: somebody else has it."""
        ...

    async def ended(self) -> None:
        """Wait until nothing is done any more."""
        ...


class BackgroundJob:
    """Tasks of which one begins when the one before has ended, however long that takes."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    def begin(self, work: Work) -> None:
        """Do this once what was begun before has ended; that is not made to end here.

        What makes a coroutine does so only then: one that was never awaited would complain.
        """
        self._task = asyncio.get_running_loop().create_task(_after(self._task, work))

    def cancel(self) -> None:
        """Let what is being done, or waits for that, end at its next wait."""
        if self._task is not None:
            self._task.cancel()

    async def ended(self) -> None:
        """Wait until nothing is done any more."""
        while self._task is not None and not self._task.done():
            await asyncio.wait([self._task])


async def _after(before: asyncio.Task[None] | None, work: Work) -> None:
    is_cancelled = False
    while before is not None and not before.done():
        try:
            await asyncio.wait([before])
        except asyncio.CancelledError:
            is_cancelled = True
            before.cancel()
    if is_cancelled:
        if not callable(work):
            work.close()
        raise asyncio.CancelledError
    await (work() if callable(work) else work)

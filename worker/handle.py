"""Tasks as the runtime sees them: health, and the handle that starts, yields and stops one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    Work: TypeAlias = "Coroutine[None, None, None] | Callable[[], Coroutine[None, None, None]]"


@dataclass(frozen=True, slots=True)
class TaskHealth:
    """Health of a partition in this process.

    is_live: owned, and caught up. behind: commits that a standby lacks; None for other roles, or if
    unknown. failure: the last error; None if it makes progress. events, rows_out, checkpoints:
    applied, written and stored by its tasks in this process. is_spent: its owner has no epoch left
    to try.
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
        """Whether it is owned or a standby, with its state restored."""
        return self.is_live or self.behind is not None


class TaskHandle(Protocol):
    """One partition in this process. It is idle until told to follow or to own.

    Every call returns at once; the previous activity ends before the next begins. Failures are
    retried with growing pauses; no call raises because of them.
    """

    @property
    def health(self) -> TaskHealth:
        """Its present health."""
        ...

    def follow(self) -> None:
        """Become a standby, without disturbing the owner."""
        ...

    def own(self, since: int, *, is_handed_over: bool = False) -> None:
        """Own it since this version of the assignment, from a standby's state if there is one.

        is_handed_over: whether the previous owner continues until this one fences it off.
        """
        ...

    def yield_ownership(self) -> None:
        """Continue as the owner until the next one has fenced it off; ``own`` revokes this."""
        ...

    def store(self) -> None:
        """Store a checkpoint soon."""
        ...

    def leave(self) -> None:
        """Complete the batch, commit, store a checkpoint, and end."""
        ...

    def drop(self) -> None:
        """End before the next effect: the partition has another owner."""
        ...

    async def ended(self) -> None:
        """Wait until it has stopped."""
        ...


class BackgroundJob:
    """A sequence of jobs: each starts when the one before has ended."""

    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    def begin(self, work: Work) -> None:
        """Start this job once the one before has ended, which is not cancelled.

        Pass a function to create the coroutine only then: one that is never awaited would warn.
        """
        self._task = asyncio.get_running_loop().create_task(_after(self._task, work))

    def cancel(self) -> None:
        """Cancel the running job, or the one that waits for it."""
        if self._task is not None:
            self._task.cancel()

    async def ended(self) -> None:
        """Wait until all jobs have ended."""
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

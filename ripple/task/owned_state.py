"""The state of a partition in a store, of which a task becomes the only owner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.connectors.commit_group import looked_at
from ripple.core.events import EntriesLost, Started

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ripple.connectors.commit_group import CommitGroup
    from ripple.storage.checkpoint import Checkpoints, Owner
    from ripple.task.spec import TaskContext
    from ripple.world.ports import World


async def _none_known() -> int:
    return 0


class OwnedState:
    """The checkpoints of a partition, and requests for another one."""

    def __init__(self, checkpoints: Checkpoints, world: World, *, epoch: int | None = None) -> None:
        """Touch nothing yet. epoch: from the assignment; None takes the next one."""
        self.partition = checkpoints.partition
        self.checkpoints = checkpoints
        self.world = world
        self._epoch = epoch
        self._is_asked = False

    def ask_for_checkpoint(self) -> None:
        """Request a checkpoint after the next batch, or as soon as the task is woken."""
        self._is_asked = True

    @property
    def is_asked(self) -> bool:
        """Whether a requested checkpoint is still to begin."""
        return self._is_asked

    def take_asked(self) -> bool:
        """Return whether one was asked for since this was called last."""
        was_asked, self._is_asked = self._is_asked, False
        return was_asked

    async def own(
        self,
        outputs: CommitGroup,
        context: TaskContext,
        newest_epoch: Callable[[], Awaitable[int]] = _none_known,
    ) -> Owner:
        """Fence every earlier task, after all checks that change nothing.

        newest_epoch: of other things that are fenced, where no epoch was assigned. Raises
        FencedError, OutputError and OSError.
        """
        world, emit = self.world, context.emit
        known = await looked_at(outputs, self._epoch)
        if self._epoch is None:  # one that is given is refused by those as they open
            known = max(known, await newest_epoch())
        owner = await self.checkpoints.claim(
            world.clock, world.random, epoch=self._epoch, above=known, keep=context.settings.keep
        )
        emit(Started(self.checkpoints.pipeline, self.partition, owner.epoch))
        if owner.damaged:
            emit(EntriesLost(owner.damaged))
        return owner

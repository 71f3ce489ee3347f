"""How every durable run is put together: of a command, a worker, Spark and the crash kit."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.task.durable_state import DurableState
from ripple.task.lifecycle import PartitionTask, TaskState
from ripple.task.owned_state import ALONE, Ownership
from ripple.task.spec import TaskSpec

if TYPE_CHECKING:
    from ripple.storage.checkpoint import Checkpoints
    from ripple.task.spec import TaskContext
    from ripple.task.standby import Standby
    from ripple.world.ports import World


class DurableTask(PartitionTask[TaskSpec]):
    """A task over inputs with its state in a store; it may be a standby first.

    A run that fails before the takeover changes nothing: a standby continues to follow, and may be
    promoted again.
    """

    def __init__(
        self,
        spec: TaskSpec,
        checkpoints: Checkpoints,
        world: World,
        context: TaskContext,
        ownership: Ownership = ALONE,
        *,
        standby: Standby | None = None,
    ) -> None:
        """Connect the parts; nothing is touched before ``follow`` or ``run``.

        checkpoints: of the partition, in a store that should retry failures. standby: follows the
        owner, over the inputs of ``spec``.
        """
        self.kept = DurableState(checkpoints, world, ownership, standby=standby)
        """Its state in the store."""
        self._is_promoted = False
        super().__init__(spec, self.kept, context)

    @property
    def behind(self) -> int | None:
        """The number of its owner's commits that a standby lacks; None if unknown."""
        return None if self.kept.standby is None else self.kept.standby.behind

    async def follow(self) -> None:
        """Restore without a claim, and follow the owner until ``run`` takes the state over.

        Raises as ``Standby.follow`` does.
        """
        assert self.kept.standby is not None, "it was made to own its partition"
        self._enter(TaskState.RESTORING)
        try:
            await self.kept.standby.follow(lambda: self._enter(TaskState.STANDBY))
        except BaseException:
            self.kept.standby = None
            if not (self._is_promoted or self._state is TaskState.CLOSED):
                self._enter(TaskState.CLOSED)
            raise

    def promote(self, spec: TaskSpec, context: TaskContext, ownership: Ownership) -> None:
        """Let ``run`` own the partition. spec: with outputs for the new epoch."""
        self._spec, self._context, self._is_promoted = spec, context, True
        self.kept.ownership = ownership

    def _begin(self) -> None:
        if self._state not in (TaskState.RESTORING, TaskState.STANDBY):
            super()._begin()

    def _end(self) -> None:
        self._is_promoted = False
        if self.kept.left is not None:
            self._run = None
            if self._state is not TaskState.STANDBY:
                self._enter(TaskState.STANDBY)
        elif self.kept.standby is None:
            super()._end()

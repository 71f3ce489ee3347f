"""How every durable run is put together: of a command, a worker, Spark and the crash kit."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict, Unpack

from ripple.storage.checkpoint import Checkpoints
from ripple.storage.fenced import ENTRIES_KEPT
from ripple.task.durable_state import DurableState
from ripple.task.lifecycle import PartitionTask
from ripple.task.spec import TaskSpec

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection

    from ripple.task.dead_letters.hint_store import HintStore
    from ripple.task.spec import TaskContext
    from ripple.task.standby import StandbyState
    from ripple.world.ports import ObjectStore, World


class Ownership(TypedDict, total=False):
    """How a task owns its partition, as arguments of ``DurableState``."""

    epoch: int | None
    place: HintStore | None
    is_remote: bool | None
    is_next: Callable[[int], bool]
    ready: Callable[[], Awaitable[StandbyState | None]]
    is_handed_over: bool
    has_survived: bool
    parks: Callable[[], bool]
    rebuild: Collection[str]
    holder: str


class DurableTask(PartitionTask[TaskSpec]):
    """A task over inputs with its state in a store."""

    def __init__(
        self,
        spec: TaskSpec,
        store: ObjectStore,
        world: World,
        context: TaskContext,
        *,
        partition: int = 0,
        entries_kept: int = ENTRIES_KEPT,
        **ownership: Unpack[Ownership],
    ) -> None:
        """Connect the parts; nothing is touched before ``run``.

        store: of checkpoints and dead letters; it should retry failures. partition: of the
        pipeline. entries_kept: see Checkpoints. ownership: by default that of the only task, on
        the world's disk.
        """
        self._inputs = spec.inputs
        self.kept = DurableState(
            Checkpoints(
                store,
                spec.plan.name,
                partition,
                entries_kept=entries_kept,
                executor=world.executor,
                guards=world.guards,
            ),
            world,
            **ownership,
        )
        """Its state in the store."""
        super().__init__(spec, self.kept, context)

    def wake(self) -> None:
        """End a wait for input, so that it sees that it shall stop or store a checkpoint."""
        self._inputs.wake()

    def ask_for_checkpoint(self) -> None:
        """Let it store a checkpoint soon."""
        self.kept.ask_for_checkpoint()
        self._inputs.wake()

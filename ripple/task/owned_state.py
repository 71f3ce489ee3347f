"""The state of a partition in a store, and how a task becomes its only owner."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.connectors.commit_group import looked_at
from ripple.core.events import EntriesLost, Started
from ripple.core.frozen import frozen
from ripple.engine.migration.adaptation import ChangedPlanError
from ripple.storage.checkpoint.moved import moved_to

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence

    from ripple.connectors.commit_group import CommitGroup
    from ripple.storage.checkpoint import Checkpoint, Checkpoints, Owner
    from ripple.task.dead_letters.hint_store import HintStore
    from ripple.task.spec import TaskContext
    from ripple.world.ports import Guards, World


SERVING = "serving"
"""The note of a checkpoint with the service of its generation."""


async def _none_known() -> int:
    return 0


async def _at_once() -> None:
    """Wait for nothing."""


@frozen(eq=False)
class Ownership:
    """How a task owns its partition; by default as the only task, on the world's disk.

    epoch: from the assignment; a claim of it may fail, and then a higher one is needed. None takes
    the next one. is_next: whether an epoch is of the assigned successor: until that has opened the
    outputs, too, this owner continues without checkpoints. is_remote: nothing is on the world's
    disk; by default with ``epoch``. Else there is a lock, held by one task. place: of dead letters
    and of in-flight notes; by default in the store of the checkpoints, the notes on the disk.
    ready: awaited right before the standby ends and the outputs open. is_handed_over: whether the
    previous owner runs until then, and has not died. is_demoted: asked at the end whether the task
    may be promoted again, with its state. parks: whether it will be, and needs no checkpoint.
    rebuild: folds that may be computed from the log's first record. holder: the name of the owner,
    for people. serving: the mark of a generation's present service, which its checkpoints note; ""
    where there is one generation (docs/design/0025-generations.md).
    """

    epoch: int | None = None
    is_next: Callable[[int], bool] = lambda _: False
    is_remote: bool | None = None
    place: HintStore | None = None
    ready: Callable[[], Awaitable[None]] = _at_once
    is_handed_over: bool = False
    is_demoted: Callable[[], bool] = lambda: False
    parks: Callable[[], bool] = lambda: False
    rebuild: Collection[str] = ()
    holder: str = "a run"
    serving: str = ""

    @property
    def is_on_disk(self) -> bool:
        """Whether locks and notes are on the world's disk."""
        return not (self.epoch is not None if self.is_remote is None else self.is_remote)

    def is_of_others(self, listed: Sequence[Checkpoint], guards: Guards) -> bool:
        """Return whether the rows that outputs show may be of another generation.

        listed: the checkpoints that count, newest first. One of this service is stored only after
        its outputs have taken the difference.
        """
        is_first = not listed or listed[0].notes.get(SERVING, "") != self.serving
        return bool(self.serving) and is_first and guards("other_generation")

    @property
    def notes(self) -> dict[str, str]:
        """The note of checkpoints that says in which service they were taken."""
        return {SERVING: self.serving} if self.serving else {}


ALONE = Ownership()


class OwnedState:
    """The checkpoints of a partition, and requests for another one."""

    def __init__(
        self, checkpoints: Checkpoints, world: World, ownership: Ownership = ALONE
    ) -> None:
        """Touch nothing yet."""
        self.partition = checkpoints.partition
        self.checkpoints = checkpoints
        self.world = world
        self.ownership = ownership
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

    async def check_here(self) -> None:
        """Raise ChangedPlanError where the state has moved to another store. Raises StoreError.

        Asked before anything is fenced, and again once the outputs are held: a move holds them
        while it records that the state moves.
        """
        name = self.checkpoints.pipeline
        if (to := await moved_to(self.checkpoints.store, name)) is not None:
            raise ChangedPlanError(f"the state of {name!r} has moved to {to}: resume there")

    async def own(
        self,
        outputs: CommitGroup,
        context: TaskContext,
        newest_epoch: Callable[[], Awaitable[int]] = _none_known,
    ) -> Owner:
        """Fence every earlier task, after all checks that change nothing.

        newest_epoch: of other things that are fenced, where no epoch was assigned. Raises
        ChangedPlanError for state that has moved, FencedError, OutputError and OSError.
        """
        await self.check_here()
        world, emit, epoch = self.world, context.emit, self.ownership.epoch
        known = await looked_at(outputs, epoch)
        if epoch is None:  # a given one is refused by outputs as they open
            known = max(known, await newest_epoch())
        owner = await self.checkpoints.claim(
            world.clock, world.random, epoch=epoch, above=known, keep=context.settings.keep
        )
        emit(Started(self.checkpoints.pipeline, self.partition, owner.epoch))
        if owner.damaged:
            emit(EntriesLost(owner.damaged))
        return owner

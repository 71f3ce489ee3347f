"""A durable partition: it recovers its outputs, then commits and stores checkpoints when due."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Protocol

from ripple.core.events import Restored, Stabilized
from ripple.task.settings import CommitPace, Pace, StorePace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from ripple.storage.checkpoint import Checkpoint
    from ripple.task.checkpointing import CheckpointWriter
    from ripple.task.edges import Publisher
    from ripple.task.live import Intake, LivePartition
    from ripple.task.restore import StartingPoint
    from ripple.task.spec import TaskContext
    from ripple.world.ports import World

# A turn is over after its time, or so many batches where no time passes, as in a simulation.
_BATCHES_PER_TURN = 8


class Recovery(Protocol):
    """Brings outputs and a restored state together: by replay, or by reconciliation."""

    async def run(self, durable: DurableRun) -> int | None:
        """Reach the outputs' cut; return the number of entries taken, None if stopped."""
        ...

    async def resume(self, durable: DurableRun, restored: Restored) -> None:
        """Let the intake begin with new entries."""
        ...


class DurableRun:
    """Runs a restored partition; its outputs may be ahead. See Run.

    The first changes, and the first after an idle time, are committed at once, because readers of
    the outputs have waited. From then on commits keep their interval.
    """

    def __init__(
        self,
        live: LivePartition,
        intake: Intake,
        storing: CheckpointWriter,
        world: World,
        context: TaskContext,
        *,
        recovery: Recovery,
        base: StartingPoint,
        newest: Checkpoint | None,
        sends: Publisher | None,
        notes: Callable[[], Awaitable[Mapping[str, str]]],
        is_hasty: bool,
        is_asked: Callable[[], bool],
        parks: Callable[[], bool] = lambda: False,
    ) -> None:
        """Begin to count the time.

        base: the starting point. newest: the newest checkpoint, for the age of the state. sends:
        publishes the partition. notes: returns the notes that a checkpoint of the present cut needs
        besides the state. is_hasty: whether the last task was killed, so that this one may be, too.
        is_asked: whether a checkpoint was requested before one is due. parks: asked at the end
        whether the next run takes the state itself, so that no checkpoint is stored.
        """
        self.live = live
        self.intake = intake
        self._context, self._recovery = context, recovery
        self._base, self._newest = base, newest
        self.clock = world.clock
        self._storing = storing
        self._guards = world.guards
        self._publisher = sends
        self._sends: Publisher | None = None
        self._traces = context.traces
        self._notes = notes
        self._is_asked = is_asked
        self._parks = parks
        settings, now_ns = context.settings, self.clock.monotonic_ns()
        self._ahead_rows = settings.commit_ahead_rows
        self._turn_length_ns = settings.turn_ms * 1_000_000
        self._turn_ns = now_ns
        self._batches = 0
        if sends is not None:
            sends.begin(live.engine)
        cut = live.engine.cut
        self._commits = CommitPace(
            settings.commit_interval_ns, settings.commit_batches, now_ns, cut, is_hasty=is_hasty
        )
        debt = None if context.debts is None else context.debts.join(intake.wake)
        self._stores = StorePace(
            settings, now_ns, lambda: live.work_ns, is_hasty=is_hasty, debt=debt
        )

    async def catch_up(self) -> bool:
        """Reach the cut where new input begins; return False if stopped before."""
        base, engine, emit = self._base, self.live.engine, self._context.emit
        began_ns = self.clock.monotonic_ns()
        count = await self._recovery.run(self)
        if count is None:
            return False
        emit(Stabilized(engine, 0))
        restored = Restored(
            None if base.checkpoint is None else base.checkpoint.name,
            base.start,
            engine.cut,
            base.skipped,
            count,
            (self.clock.monotonic_ns() - began_ns) / 1e9,
            engine.digest,
            None if self._newest is None else self._newest.written_ns,
        )
        self._context.report.restored = restored
        emit(restored)
        await self._recovery.resume(self, restored)
        await self._go_live()
        return True

    async def finish(self) -> None:
        """Commit, and store a checkpoint unless the next run takes the state itself."""
        if self._parks():
            await self.commit()
        else:
            await self.store()

    @asynccontextmanager
    async def abandoned_on_failure(self) -> AsyncIterator[DurableRun]:
        """Give up the commit and the checkpoint in progress if the block fails."""
        try:
            yield self
        except GeneratorExit:  # nothing runs any more that could be waited for
            raise
        except BaseException:
            try:
                await self.live.abandon()
            finally:  # it may be cancelled again meanwhile
                await self._storing.abandon()
            raise
        finally:
            self._stores.end()

    async def _go_live(self) -> None:
        """Publish the partition from now on: its present state is committed again."""
        self._sends = self._publisher
        if self._sends is not None:
            await self.commit_restored()

    async def commit_restored(self) -> None:
        """Commit the present state, which readers do not wait for."""
        self._commits.cut = self.live.engine.cut
        await self.commit()

    async def keep_replay(self, stabilize: Callable[[], Awaitable[None]] | None) -> None:
        """Store a checkpoint when one is due, so that the next task need not replay all this.

        stabilize: None where the present cut cannot be committed.
        """
        now_ns = self.clock.monotonic_ns()
        self._storing.step()
        is_due = self._stores.is_due(now_ns)
        if is_due and stabilize is not None and not self._storing.is_busy:
            if not self.live.is_stabilized:
                await stabilize()
            await self.commit()
            await self._begin_checkpoint()
            self._stores.begin(now_ns)

    async def keep(self) -> None:
        """Commit and begin checkpoints when they are due; let others run when the turn is over."""
        now_ns = self.clock.monotonic_ns()
        if self._sends is not None:
            self._sends.offer_uncommitted(self.live.engine)
        self._storing.step()
        is_committing = self._is_committing()
        commit_due, store_due = self._commits.is_due(now_ns), self._stores.is_due(now_ns)
        is_committed = self.live.is_committed
        commit_due = commit_due and not is_committed
        if self._sends is not None:
            is_owed = is_committed and self._sends.is_owed
            commit_due = commit_due or is_owed or self._sends.is_wanted
        if not self._storing.is_busy and (self._is_asked() or store_due):
            if self._guards("commit_first"):
                await self.commit()
            await self._begin_checkpoint()
            self._stores.begin(now_ns)
        elif commit_due and not (is_committing and self._has_room):
            await self._begin_commit()
        self._batches += 1
        is_over = is_committing or self._batches >= _BATCHES_PER_TURN
        if is_over or now_ns - self._turn_ns >= self._turn_length_ns:
            await self.clock.sleep(0)
            self._batches, self._turn_ns = 0, self.clock.monotonic_ns()

    async def wait(self) -> None:
        """Wait until there may be more, a checkpoint is stored, or something is due."""
        if self._storing.is_copying:
            await self.clock.sleep(0)
            return
        await self.intake.rest()
        now_ns = self.clock.monotonic_ns()
        is_done = self.live.is_committing or self.live.is_committed
        paces: list[Pace] = [] if is_done else [self._commits]
        paces += [] if self._storing.is_busy else [self._stores]
        due_in_s = [pace.due_in_s(now_ns) for pace in paces]
        with suppress(TimeoutError):
            async with asyncio.timeout(min((s for s in due_in_s if s is not None), default=None)):
                await self.intake.more()

    @property
    def _has_room(self) -> bool:
        """Whether to take in more instead of waiting for a commit in progress."""
        return self.live.uncommitted_rows < self._ahead_rows

    @property
    def is_settled(self) -> bool:
        """Whether everything taken in is committed, and no checkpoint is in progress."""
        return self.live.is_committed and not self._storing.is_busy

    async def commit(self) -> None:
        """Make written rows durable, then publish them."""
        await self._begin_commit()
        await self.live.committed()
        self._is_committing()

    async def _begin_commit(self) -> None:
        """Begin to commit written rows, which are published once that is certain."""
        await self.live.committed()
        self._is_committing()
        self._commits.begin_at(self.live.engine.cut, self.clock.monotonic_ns())
        await self.live.begin_commit(self.intake)
        if self._sends is not None:
            if self._traces is not None:
                self._traces.given(self._sends.trace)
            self._sends.take(self.live.engine)
        self._is_committing()

    def _is_committing(self) -> bool:
        """Return whether a commit is under way; after its end, followers get its changes.

        Raises the error of a failed one.
        """
        is_committing = self.live.is_committing
        if self._sends is not None and not is_committing:
            self._sends.give()
        return is_committing

    async def store(self) -> None:
        """Commit, and complete a checkpoint of the present cut."""
        await self.commit()
        await self.complete_checkpoint()

    async def complete_checkpoint(self) -> None:
        """Store the present cut, which is committed, or which nothing was written for."""
        await self._storing.drain()  # one that was begun while catching up, or in time
        await self._begin_checkpoint()
        await self._storing.drain()
        last = self._storing.last
        self.live.report.checkpoint = last.name if last else None

    async def _begin_checkpoint(self) -> None:
        engine, last = self.live.engine, self._storing.last
        if last is None or dict(last.cut) != engine.cut:
            self._storing.begin(engine, await self._notes())

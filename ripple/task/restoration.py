"""From a restored state to a live partition: recover the outputs, then take in what is new."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from ripple.core.events import Restored, Stabilized

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.storage.checkpoint import Checkpoint
    from ripple.task.durable_run import DurableRun
    from ripple.task.live import Intake, LivePartition
    from ripple.task.restore import StartingPoint
    from ripple.task.spec import TaskContext


class Recovery(Protocol):
    """Leads from a restored state to outputs that hold it: by replay, or by reconciliation."""

    async def run(self, durable: DurableRun) -> int | None:
        """Reach what the outputs hold; return how many entries that took, None if stopped."""
        ...

    async def resume(self, durable: DurableRun, restored: Restored) -> None:
        """Let the intake begin there with what is new."""
        ...


@dataclass(frozen=True, slots=True)
class Restoration:
    """A restored partition, which the outputs may be ahead of. See Run.

    base: from where. newest: the checkpoint that tells how old the state is. parks: asked at the
    end whether the next task takes the state itself, so that no checkpoint is stored.
    """

    durable: DurableRun
    base: StartingPoint
    newest: Checkpoint | None
    recovery: Recovery
    context: TaskContext
    parks: Callable[[], bool] = lambda: False

    @property
    def live(self) -> LivePartition:
        """The partition and its outputs."""
        return self.durable.live

    @property
    def intake(self) -> Intake:
        """Its intake."""
        return self.durable.intake

    async def catch_up(self) -> bool:
        """Reach the cut where new input begins; return False if stopped before."""
        base, durable, engine, emit = self.base, self.durable, self.live.engine, self.context.emit
        began_ns = durable.clock.monotonic_ns()
        count = await self.recovery.run(durable)
        if count is None:
            return False
        emit(Stabilized(engine, 0))
        restored = Restored(
            None if base.checkpoint is None else base.checkpoint.name,
            base.start,
            engine.cut,
            base.skipped,
            count,
            (durable.clock.monotonic_ns() - began_ns) / 1e9,
            engine.digest,
            None if self.newest is None else self.newest.written_ns,
        )
        self.context.report.restored = restored
        emit(restored)
        await self.recovery.resume(durable, restored)
        await durable.go_live()
        return True

    async def keep(self) -> None:
        """Commit and begin checkpoints when they are due; let others run."""
        await self.durable.keep()

    async def wait(self) -> None:
        """Wait for more, or until something is due."""
        await self.durable.wait()

    async def finish(self) -> None:
        """Commit, and store a checkpoint unless the next task takes the state itself."""
        if self.parks():
            await self.durable.commit()
        else:
            await self.durable.store()

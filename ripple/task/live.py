"""A partition at work: its changes are written to its outputs, and committed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ripple.core.events import Committed, Ended, Stabilized, no_listener
from ripple.task.notices import ExceptionNotices

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from ripple.connectors.inputs import Signal
    from ripple.core.cut import Cut
    from ripple.engine.machine import Changes
    from ripple.engine.machine.partition import Partition
    from ripple.task.outputs import Outputs
    from ripple.task.spec import TaskContext


class Intake(Protocol):
    """The intake of a partition: replayable inputs, or a subscription."""

    async def take(self) -> Signal | None:
        """Take in a batch, and write its changes; or return why there is none."""
        ...

    async def more(self) -> None:
        """Wait until ``take`` may have more, or until woken; it may be too early."""
        ...

    async def rest(self) -> None:
        """Prepare a wait, before ``more``."""
        ...

    def wake(self) -> None:
        """Let ``more`` return, or its next call if there is no waiter."""
        ...

    async def sync(self) -> None:
        """Make the intake durable, before a cut with it is committed."""
        ...


class LivePartition:
    """A restored partition and its outputs.

    Invariants: ``is_stabilized``: the views, and the written rows, are at the partition's cut;
    ``cut`` is the one of the last stabilization. At most one commit is in progress, and the
    partition has reached the committed cut.
    """

    def __init__(
        self,
        engine: Partition,
        outputs: Outputs,
        context: TaskContext,
        *,
        now_ns: Callable[[], int] = lambda: 0,
    ) -> None:
        """Resume from the cut of the engine, whose views are stabilized.

        now_ns: a clock, to measure commits.
        """
        self.engine = engine
        self.cut: Cut = engine.cut
        self.outputs = outputs
        self.report = context.report
        self.is_stabilized = True
        self.work_ns = 0  # that taking batches took
        self.noticed = ExceptionNotices(context.emit, engine.counters)
        self._now_ns = now_ns
        self._emit = context.emit
        self._committed: Cut | None = None
        self._rows_committed = 0
        self._committing: asyncio.Task[None] | None = None

    def write(self, changes: Changes, began_ns: int) -> None:
        """Write the changes of a stabilization. began_ns: the time of its start."""
        if self._emit is not no_listener:  # of every batch
            self._emit(Stabilized(self.engine, self._now_ns() - began_ns))
        self.is_stabilized = True
        self.cut = changes.cut
        self.outputs.write(changes, self.engine)
        self.report.rows_out = self.outputs.rows_out

    async def commit(self, intake: Intake) -> None:
        """Make every output's data durable, with the cut that they reach."""
        await self.begin_commit(intake)
        await self.committed()

    async def begin_commit(self, intake: Intake) -> None:
        """Begin to commit, after the previous commit; later batches belong to a later commit.

        intake: made durable before, and woken when the commit is done, or has failed. Outputs that
        take nothing while they commit have committed when this returns.
        """
        await self.committed()
        cut = self.engine.cut
        if self._committed == cut:
            return
        self.noticed.look(self.engine)
        began_ns = self._now_ns()
        await intake.sync()
        written, digests = self.outputs.rows_out, self.engine.digests
        commit = self.outputs.commit(self.engine)

        async def act() -> None:
            await commit
            self._committed = cut
            self.report.commits += 1
            seconds = (self._now_ns() - began_ns) / 1e9
            rows, self._rows_committed = written - self._rows_committed, written
            self._emit(Committed(cut, rows, seconds, digests))

        if not self.outputs.commits_beside:
            await act()
            return
        import asyncio  # noqa: PLC0415 - slow, and only outputs that others wait for need it

        self._committing = asyncio.create_task(act())

        def done(_: object) -> None:
            commit.close()  # it may have been cancelled before it began
            intake.wake()

        self._committing.add_done_callback(done)

    @property
    def is_committing(self) -> bool:
        """Whether a commit is under way. Raises the error of a failed one."""
        if self._committing is not None and self._committing.done():
            task, self._committing = self._committing, None
            task.result()
        return self._committing is not None

    async def committed(self) -> None:
        """Wait until no commit is under way. Raises the error of a failed one."""
        if self._committing is not None:
            import asyncio  # noqa: PLC0415 - likewise

            await asyncio.wait([self._committing])
            assert not self.is_committing

    async def abandon(self) -> None:
        """Give up a commit that is under way: the run has failed."""
        task, self._committing = self._committing, None
        if task is not None:
            from ripple.world.together import called_off  # noqa: PLC0415 - likewise

            await called_off(task)

    @property
    def is_committed(self) -> bool:
        """Whether the outputs have committed the whole intake."""
        return self.is_stabilized and self._committed == self.engine.cut

    @property
    def has_committed(self) -> bool:
        """Whether anything was committed."""
        return self._committed is not None

    @property
    def uncommitted_rows(self) -> int:
        """How many rows were written since the last commit."""
        return self.outputs.rows_out - self._rows_committed

    def end(self) -> None:
        """Report the state at the end."""
        self.report.watermark_ns = self.report.watermark_ns or self.engine.watermark_ns
        self.report.uncomputable = self.engine.uncomputable
        self.report.versions_out_of_order = self.engine.versions_out_of_order
        self.report.cut, self.report.digest = self.engine.cut, self.engine.digest
        self._emit(Ended(self.report.cut, self.report.digest))

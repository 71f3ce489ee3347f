"""The task of a partition of a downstream stage: receive, stabilize, write, commit, store.

Its input cannot be read again, so it recovers by reconciliation: from the newest checkpoint it
receives changes without writing, up to a cut at or beyond all that its outputs hold, and writes
there once the difference. See ``docs/exchange.md``.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from ripple.connectors.commit_group import looked_at
from ripple.connectors.contract import Commit
from ripple.connectors.endings import Endings
from ripple.core.errors import OutputError
from ripple.core.events import (
    Committed,
    Ended,
    EntriesLost,
    EventListener,
    Restored,
    Stabilized,
    Started,
    no_listener,
)
from ripple.task.checkpointing import CheckpointWriter
from ripple.task.downstream_start import StagePosition
from ripple.task.lifecycle import PartitionTask
from ripple.task.notices import ExceptionNotices
from ripple.task.reconciliation import Reconciliation, mark_of
from ripple.task.restore import check_holders, holders
from ripple.task.settings import CommitPace, Pace, Settings, StorePace
from ripple.task.upstream_intake import UpstreamIntake

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ripple.connectors.commit_group import OutputStatus, ReadableGroup
    from ripple.core.cut import Cut
    from ripple.model.pipeline.plan import Plan
    from ripple.storage.checkpoint import Checkpoint, Checkpoints, Owner
    from ripple.task.downstream_start import DownstreamStart
    from ripple.task.edges import Publisher, Upstream
    from ripple.task.tracing import Traces
    from ripple.world.ports import World


class DownstreamTask(PartitionTask):
    """A task over the changes of the upstream stage, which cannot be read again.

    Invariants: outputs hold the engine's cut, or, until reconciled, a later one; a cut is published
    downstream only once it is committed.
    """

    def __init__(
        self,
        plan: Plan,
        stage: int,
        number: int,
        senders: int,
        *,
        follows: Upstream[Any],
        outputs: ReadableGroup,
        checkpoints: Checkpoints,
        world: World,
        epoch: int | None,
        sends: Publisher | None = None,
        settings: Settings | None = None,
        emit: EventListener = no_listener,
        stop: Callable[[], bool] = lambda: False,
        wake: asyncio.Event | None = None,
        traces: Traces | None = None,
    ) -> None:
        """Connect the parts; nothing is touched before ``run``.

        senders: number of partitions of the upstream stage. epoch: from the assignment, None takes
        the next one. sends: publishes to the downstream stage. stop: asked between two turns
        whether to end in good order. wake: is set when changes arrive, are requested, or the task
        is to stop. traces: of arrivals, None without tracing.
        """
        super().__init__(stop)
        self._place = StagePosition(plan, stage, number, tuple(map(str, range(senders))))
        self.engine = self._place.fresh()
        self._follows, self._sends = follows, sends
        self._outputs = outputs
        self._checkpoints = checkpoints
        self._world = world
        self._epoch = epoch
        self._settings = settings = settings or Settings()
        self._emit = emit
        self._wake = wake or asyncio.Event()
        self._traces = traces
        now_ns = world.clock.monotonic_ns()
        self._commits = CommitPace(
            settings.commit_interval_ns, settings.commit_batches, now_ns, None
        )
        self._work_ns = 0
        self._turn_ns = now_ns
        self._stores = StorePace(settings, now_ns, lambda: self._work_ns)
        self._storing: CheckpointWriter
        self._standings: Mapping[str, OutputStatus] = {}
        self._committed: Cut | None = None
        self._rows_reported = 0
        self._is_asked = False
        self._following: UpstreamIntake
        self._noticed: ExceptionNotices
        # Of the checkpoints that may have to be read: up to where final rows are in them.
        self._stored_ns: deque[int] = deque(maxlen=settings.keep)
        self._storing_ns = 0
        self._last: Checkpoint | None = None

    def ask_for_checkpoint(self) -> None:
        """Let a checkpoint be begun soon."""
        self._is_asked = True
        self._wake.set()

    @asynccontextmanager
    async def _restored(self, endings: Endings) -> AsyncIterator[_DownstreamRun]:
        endings.add(self._outputs.close)
        owner = await self._claim()
        listed = await self._checkpoints.list()
        self._standings = await self._outputs.open(owner.epoch, self._emit)
        for output in self._standings:
            if output not in self.engine.digests:
                raise OutputError(f"{output!r} is no output of stage {self._place.stage}")
            self._outputs.mark(output)  # or it says why it cannot
        check_holders(listed, self._standings)
        base = await self._restore(listed)
        try:
            yield _DownstreamRun(self, base)
        except GeneratorExit:  # nothing runs any more that could be waited for
            raise
        except BaseException:
            await self._storing.abandon()
            raise

    async def _claim(self) -> Owner:
        world, settings = self._world, self._settings
        known = await looked_at(self._outputs, self._epoch)
        owner = await self._checkpoints.claim(
            world.clock, world.random, epoch=self._epoch, above=known, keep=settings.keep
        )
        self._emit(Started(self._place.plan.name, self._checkpoints.partition, owner.epoch))
        if owner.damaged:
            self._emit(EntriesLost(owner.damaged))
        self._storing = CheckpointWriter(
            owner,
            settings.snapshot_rows,
            world.executor,
            self._emit,
            self._wake.set,
            now_ns=world.clock.monotonic_ns,
        )
        return owner

    async def _restore(self, listed: Sequence[Checkpoint]) -> DownstreamStart:
        """Restore the newest state that is not ahead of an output, or begin with none."""
        world, settings = self._world, self._settings
        base = await self._place.base(
            self._checkpoints, listed, self._standings.values(), world.executor
        )
        self.engine = base.engine
        self._noticed = ExceptionNotices(self._emit, base.engine.counters)
        if base.checkpoint is not None:
            self._stored_ns.append(base.engine.watermark_ns)
            self._storing.last = self._last = base.checkpoint
        self._following = UpstreamIntake(
            self._follows,
            base.engine,
            self._place.senders,
            clock=world.clock,
            turn_ms=settings.turn_ms,
            wake=self._wake,
            report=self.report,
            traces=self._traces,
        )
        return base

    async def _come_back(self, base: DownstreamStart) -> bool:
        """Reach the cut where new input begins; return False if stopped before."""
        clock, engine, following = self._world.clock, self.engine, self._following
        began_ns = clock.monotonic_ns()
        comeback = Reconciliation(
            self._place.plan,
            base,
            self._outputs,
            self._standings,
            guards=self._world.guards,
            emit=self._emit,
        )
        if comeback.holds_nothing:
            # So that outputs without any checkpoint are of one that was lost.
            await self._store()
        await comeback.look()
        await following.begin()
        start, changes = engine.cut, engine.stabilize()
        while not comeback.has_come(following):
            if self._stop():
                return False
            if await following.take_in():
                changes = engine.stabilize()
                comeback.followed(changes)
            else:
                await following.wait(None)
        schemas = {output: rows.schema for output, rows in changes.outputs.items()}
        self.report.rows_out += comeback.write(schemas)
        self._commits.cut = engine.cut
        await self._commit()
        self._emit(Stabilized(engine, 0))
        restored = Restored(
            None if base.checkpoint is None else base.checkpoint.name,
            start,
            engine.cut,
            base.skipped,
            self.report.events,
            (clock.monotonic_ns() - began_ns) / 1e9,
            engine.digest,
            None if base.checkpoint is None else base.checkpoint.written_ns,
        )
        self.report.restored = restored
        self._emit(restored)
        self._turn_ns = clock.monotonic_ns()
        return True

    async def _step(self) -> None:
        clock = self._world.clock
        began_ns = clock.monotonic_ns()
        if await self._following.take_in():
            self._bring_up()
            self._work_ns += clock.monotonic_ns() - began_ns
        elif self._storing.is_copying:
            await clock.sleep(0)
        else:
            await self._following.wait(self._due_in_s())
        await self._keep()
        if clock.monotonic_ns() - self._turn_ns >= self._settings.turn_ms * 1_000_000:
            await clock.sleep(0)
            self._turn_ns = clock.monotonic_ns()

    def _bring_up(self) -> None:
        """Bring the views up to the cut, and write what changed."""
        traces, before = self._traces, self.report.rows_out
        if traces is not None:
            traces.begin_arrived()
        began_ns = self._world.clock.monotonic_ns()
        changes = self.engine.stabilize()
        took_ns = self._world.clock.monotonic_ns() - began_ns
        self._emit(Stabilized(self.engine, took_ns))
        self.report.stabilizations += 1
        digests: Mapping[str, str] = {}
        for output, rows in changes.outputs.items():
            if output in self._standings and rows.num_rows:
                digests = digests or self.engine.digests
                self._outputs.write(output, rows, Commit(changes.cut, digests[output]))
                self.report.rows_out += rows.num_rows
        if traces is not None:
            traces.end(self.report.rows_out - before)

    async def _keep(self) -> None:
        """Commit and begin checkpoints when they are due."""
        now_ns = self._world.clock.monotonic_ns()
        if self._sends is not None:
            self._sends.offer_uncommitted(self.engine)
        self._look_at_storing()
        commit_due, store_due = self._commits.is_due(now_ns), self._stores.is_due(now_ns)
        if (store_due or self._is_asked) and not self._storing.is_busy:
            self._is_asked = False
            await self._commit()
            self._begin_checkpoint()
            self._stores.begin(now_ns)
        elif self._is_offer_due or (commit_due and not self._is_committed):
            await self._commit()

    @property
    def _is_offer_due(self) -> bool:
        """Whether a subscriber waits for an offer that no commit makes by itself."""
        if self._sends is None:
            return False
        return self._sends.is_wanted or (self._is_committed and self._sends.is_owed)

    def _due_in_s(self) -> float | None:
        now_ns = self._world.clock.monotonic_ns()
        paces: list[Pace] = [] if self._is_committed else [self._commits]
        paces += [] if self._storing.is_busy else [self._stores]
        return min((s for pace in paces if (s := pace.due_in_s(now_ns)) is not None), default=None)

    @property
    def _is_committed(self) -> bool:
        return self._committed == self.engine.cut

    async def _commit(self) -> None:
        """Make written rows durable, then publish them downstream."""
        clock, cut = self._world.clock, self.engine.cut
        self._commits.begin_at(cut, clock.monotonic_ns())
        if not self._is_committed:
            self._noticed.look(self.engine)
            began_ns, digests = clock.monotonic_ns(), self.engine.digests
            commits = {output: Commit(cut, digests[output]) for output in self._standings}
            await self._outputs.commit(commits)
            self._committed = cut
            self.report.commits += 1
            rows, self._rows_reported = (
                self.report.rows_out - self._rows_reported,
                self.report.rows_out,
            )
            seconds = (clock.monotonic_ns() - began_ns) / 1e9
            self._emit(Committed(cut, rows, seconds, digests))
        if self._sends is not None:
            if self._traces is not None:
                self._traces.given(self._sends.trace)
            self._sends.offer(self.engine)

    # --- checkpoints ---

    def _begin_checkpoint(self) -> None:
        """Begin to store the present cut, which the outputs have committed."""
        last = self._storing.last
        if last is None or dict(last.cut) != self.engine.cut:
            marks = {mark_of(output): self._outputs.mark(output) for output in self._standings}
            self._storing_ns = self.engine.watermark_ns
            self._storing.begin(self.engine, marks | self._holders)

    @property
    def _holders(self) -> dict[str, str]:
        """The notes of the outputs' holders, once there are any."""
        return {} if self._committed is None else holders(self._standings)

    def _look_at_storing(self) -> None:
        self._storing.step()
        if self._storing.last is not self._last:
            self._last = self._storing.last
            self._stored_ns.append(self._storing_ns)
            # Not of the newest alone: should that be damaged, one before is read.
            if len(self._stored_ns) == self._stored_ns.maxlen:
                self._following.release(self._stored_ns[0])

    async def _store(self) -> None:
        await self._storing.drain()
        self._look_at_storing()
        self._begin_checkpoint()
        await self._storing.drain()
        self._look_at_storing()
        self.report.checkpoint = self._last.name if self._last else None

    async def _finish(self) -> None:
        """Leave everything in good order."""
        await self._commit()
        await self._store()
        self.report.watermark_ns = self.engine.watermark_ns
        self.report.cut, self.report.digest = self.engine.cut, self.engine.digest
        self._emit(Ended(self.report.cut, self.report.digest))


class _DownstreamRun:
    """A run over upstream changes, one turn a step."""

    def __init__(self, task: DownstreamTask, base: DownstreamStart) -> None:
        self._task, self._base = task, base

    async def catch_up(self) -> bool:
        return await self._task._come_back(self._base)

    async def step(self) -> bool:
        await self._task._step()
        return True

    async def finish(self) -> None:
        await self._task._finish()

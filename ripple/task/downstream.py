"""One process's life over a partition of a later stage: follow, bring up, write, commit, store.

It reads no log that could be read again, so after a crash it goes on differently from other
lives: from the newest checkpoint it follows its senders, unseen, to a cut that is at or beyond all
that its outputs hold, and writes there once what makes them right. See ``docs/exchange.md``.
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import TYPE_CHECKING, Any

from ripple.connectors.commit_group import looked_at
from ripple.connectors.contract import Commit
from ripple.connectors.endings import Endings
from ripple.core.errors import OutputError
from ripple.core.events import (
    Committed,
    Ended,
    EntriesLost,
    Restored,
    Stabilized,
    Started,
    Tell,
    untold,
)
from ripple.task.checkpointing import CheckpointWriter
from ripple.task.downstream_start import StagePosition
from ripple.task.notices import ExceptionNotices
from ripple.task.reconciliation import Reconciliation, mark_of
from ripple.task.report import Report
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


class DownstreamTask:
    """One run over a partition of a later stage. ``run`` is called once.

    Invariants: what was written is at the engine's cut, or, until it has come back, at less than
    the outputs hold; a cut is offered to the next stage only once it is committed.
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
        tell: Tell = untold,
        stop: Callable[[], bool] = lambda: False,
        wake: asyncio.Event | None = None,
        traces: Traces | None = None,
    ) -> None:
        """Connect the parts; nothing is touched before ``run``.

        senders: how many partitions the stage before has. epoch: from whoever assigns partitions,
        None takes the next one. sends: who follows this one. stop: asked between two turns whether
        to end in good order. wake: is set when something has arrived, is wanted, or is to stop.
        traces: of what arrives, None where nobody follows events.
        """
        self.report = Report()
        self._place = StagePosition(plan, stage, number, tuple(map(str, range(senders))))
        self.engine = self._place.fresh()
        self._follows, self._sends = follows, sends
        self._outputs = outputs
        self._checkpoints = checkpoints
        self._world = world
        self._epoch = epoch
        self._settings = settings = settings or Settings()
        self._tell = tell
        self._stop = stop
        self._wake = wake or asyncio.Event()
        self._traces = traces
        now_ns = world.clock.monotonic_ns()
        self._commits = CommitPace(
            settings.commit_interval_ns, settings.commit_batches, now_ns, None
        )
        self._work_ns = 0
        self._stores = StorePace(settings, now_ns, lambda: self._work_ns)
        self._storing: CheckpointWriter
        self._standings: Mapping[str, OutputStatus] = {}
        self._committed: Cut | None = None
        self._rows_told = 0
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

    async def run(self) -> Report:
        """Go on with the partition until ``stop`` says so.

        Raises FencedError and StaleEpochError when somebody else owns it, ChangedPlanError for
        checkpoints of other code, InputError, OutputError, SnapshotError, CheckpointError and
        OSError. Whatever is raised, what was committed stays.
        """
        async with Endings() as endings:
            endings.add(self._outputs.close)
            owner = await self._claim()
            listed = await self._checkpoints.list()
            self._standings = await self._outputs.open(owner.epoch, self._tell)
            for output in self._standings:
                if output not in self.engine.digests:
                    raise OutputError(f"{output!r} is no output of stage {self._place.stage}")
                self._outputs.mark(output)  # or it says why it cannot
            check_holders(listed, self._standings)
            base = await self._restore(listed)
            try:
                if await self._come_back(base):
                    await self._go_on()
                    await self._finish()
            except BaseException:
                await self._storing.abandon()
                raise
        return self.report

    async def _claim(self) -> Owner:
        world, settings = self._world, self._settings
        known = await looked_at(self._outputs, self._epoch)
        owner = await self._checkpoints.claim(
            world.clock, world.random, epoch=self._epoch, above=known, keep=settings.keep
        )
        self._tell(Started(self._place.plan.name, self._checkpoints.partition, owner.epoch))
        if owner.damaged:
            self._tell(EntriesLost(owner.damaged))
        self._storing = CheckpointWriter(
            owner,
            settings.snapshot_rows,
            world.executor,
            self._tell,
            self._wake.set,
            now_ns=world.clock.monotonic_ns,
        )
        return owner

    async def _restore(self, listed: Sequence[Checkpoint]) -> DownstreamStart:
        """Take the newest state that no output is behind, or none."""
        world, settings = self._world, self._settings
        base = await self._place.base(
            self._checkpoints, listed, self._standings.values(), world.executor
        )
        self.engine = base.engine
        self._noticed = ExceptionNotices(self._tell, base.engine.counters)
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
        """Come to where what is new begins; return False if told to stop before."""
        clock, engine, following = self._world.clock, self.engine, self._following
        began_ns = clock.monotonic_ns()
        comeback = Reconciliation(
            self._place.plan,
            base,
            self._outputs,
            self._standings,
            guards=self._world.guards,
            tell=self._tell,
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
        self._tell(Stabilized(engine, 0))
        restored = Restored(
            None if base.checkpoint is None else base.checkpoint.name,
            start,
            engine.cut,
            base.passed_over,
            self.report.events,
            (clock.monotonic_ns() - began_ns) / 1e9,
            engine.digest,
            None if base.checkpoint is None else base.checkpoint.written_ns,
        )
        self.report.restored = restored
        self._tell(restored)
        return True

    async def _go_on(self) -> None:
        clock = self._world.clock
        turn_ns, length_ns = clock.monotonic_ns(), self._settings.turn_ms * 1_000_000
        while not self._stop():
            began_ns = clock.monotonic_ns()
            if await self._following.take_in():
                self._bring_up()
                self._work_ns += clock.monotonic_ns() - began_ns
            elif self._storing.is_copying:
                await clock.sleep(0)
            else:
                await self._following.wait(self._due_in_s())
            await self._keep()
            if clock.monotonic_ns() - turn_ns >= length_ns:
                await clock.sleep(0)
                turn_ns = clock.monotonic_ns()

    def _bring_up(self) -> None:
        """Bring the views up to the cut, and write what changed."""
        traces, before = self._traces, self.report.rows_out
        if traces is not None:
            traces.begin_arrived()
        began_ns = self._world.clock.monotonic_ns()
        changes = self.engine.stabilize()
        took_ns = self._world.clock.monotonic_ns() - began_ns
        self._tell(Stabilized(self.engine, took_ns))
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
        self._step()
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
        """Whether somebody waits for what no commit brings by itself."""
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
        """Let what was written survive, then let others follow it."""
        clock, cut = self._world.clock, self.engine.cut
        self._commits.begin_at(cut, clock.monotonic_ns())
        if not self._is_committed:
            self._noticed.look(self.engine)
            began_ns, digests = clock.monotonic_ns(), self.engine.digests
            commits = {output: Commit(cut, digests[output]) for output in self._standings}
            await self._outputs.commit(commits)
            self._committed = cut
            self.report.commits += 1
            rows, self._rows_told = self.report.rows_out - self._rows_told, self.report.rows_out
            seconds = (clock.monotonic_ns() - began_ns) / 1e9
            self._tell(Committed(cut, rows, seconds, digests))
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
        """The notes of what has the rows of outputs, once there are any."""
        return {} if self._committed is None else holders(self._standings)

    def _step(self) -> None:
        self._storing.step()
        if self._storing.last is not self._last:
            self._last = self._storing.last
            self._stored_ns.append(self._storing_ns)
            # Not of the newest alone: should that be damaged, one before is read.
            if len(self._stored_ns) == self._stored_ns.maxlen:
                self._following.release(self._stored_ns[0])

    async def _store(self) -> None:
        await self._storing.drain()
        self._step()
        self._begin_checkpoint()
        await self._storing.drain()
        self._step()
        self.report.checkpoint = self._last.name if self._last else None

    async def _finish(self) -> None:
        """Leave everything in good order."""
        await self._commit()
        await self._store()
        self.report.watermark_ns = self.engine.watermark_ns
        self._tell(Ended(self.engine.cut, self.engine.digest))

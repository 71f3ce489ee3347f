"""The durable state of a partition whose input cannot be read again.

It recovers by reconciliation: from the newest checkpoint it receives changes without writing, up to
a cut at or beyond those of its outputs, and writes there once the difference. See
``docs/exchange.md``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from ripple.core import cut as cuts
from ripple.core.errors import OutputError
from ripple.engine.snapshots.snapshot import SnapshotError
from ripple.task.checkpointing import CheckpointWriter
from ripple.task.durable_run import DurableRun
from ripple.task.live import LivePartition
from ripple.task.outputs import Outputs
from ripple.task.owned_state import OwnedState
from ripple.task.read_ahead import ReadAhead
from ripple.task.reconciliation import Reconciliation, mark_of
from ripple.task.restore import check_holders, holders
from ripple.task.upstream_intake import UpstreamIntake

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from ripple.connectors.commit_group import OutputStatus
    from ripple.connectors.endings import Endings
    from ripple.storage.checkpoint import Checkpoint, Owner
    from ripple.task.restore import StartingPoint
    from ripple.task.spec import TaskContext
    from ripple.task.stage_spec import StageSpec


class SubscribedState(OwnedState):
    """The store of a downstream partition's state, and the way to resume from it."""

    @asynccontextmanager
    async def running_state(
        self, spec: StageSpec, context: TaskContext, endings: Endings
    ) -> AsyncIterator[DurableRun]:
        """Become the owner, open the outputs, restore; see StateManager."""
        endings.add(spec.outputs.close)
        owner = await self.own(spec.outputs, context)
        listed = await self.checkpoints.list()
        ahead = await self._read_ahead(spec, listed)
        standings = await spec.outputs.open(owner.epoch, context.emit)
        await self.check_here()
        is_of_others = self.ownership.is_of_others(listed, self.world.guards)
        self._check(spec, listed, standings, is_of_others=is_of_others)
        durable = await self._restore(spec, context, owner, listed, standings, ahead=ahead)
        async with durable.abandoned_on_failure():
            yield durable

    async def _read_ahead(self, spec: StageSpec, listed: tuple[Checkpoint, ...]) -> ReadAhead:
        """Read the published rows of another generation, while it still writes."""
        if not self.ownership.is_of_others(listed, self.world.guards):
            return ReadAhead()
        plan = spec.plan
        tables = [one for one in plan.outputs if not one.is_stream]
        ahead = ReadAhead(spec.outputs, {one.name: plan.fold(one.of).key for one in tables})
        await ahead.read()
        await ahead.read()  # the changes since then
        return ahead

    def _check(
        self,
        spec: StageSpec,
        listed: tuple[Checkpoint, ...],
        standings: Mapping[str, OutputStatus],
        *,
        is_of_others: bool,
    ) -> None:
        """Raise OutputError for an output that is not of the stage, or cannot be read back.

        is_of_others: whether it may be of a generation with other partitions.
        """
        made = spec.fresh().digests
        for output in standings:
            if output not in made:
                raise OutputError(f"{output!r} is no output of stage {spec.stage}")
            spec.outputs.mark(output)
            commit = standings[output].committed
            if commit is not None and any(
                not _is_of(name, spec.senders, is_of_others=is_of_others) for name in commit.cut
            ):
                raise OutputError(
                    f"{standings[output].name} is at {cuts.brief(commit.cut)}, a cut of one "
                    "process or of other partitions: move their state and outputs with ripple "
                    "checkpoint move; or name another store and other outputs, to compute "
                    "everything from the first record"
                )
        check_holders(listed, standings)

    async def _restore(
        self,
        spec: StageSpec,
        context: TaskContext,
        owner: Owner,
        listed: tuple[Checkpoint, ...],
        standings: Mapping[str, OutputStatus],
        *,
        ahead: ReadAhead,
    ) -> DurableRun:
        """Restore the newest state that is not ahead of an output, or begin with none."""
        world = self.world
        engine, base = await spec.restore(
            self.checkpoints, listed, standings.values(), world.executor
        )
        is_of_others = self.ownership.is_of_others(listed, world.guards)
        has_shown = any(one.committed for one in standings.values())
        if is_of_others and has_shown and listed and base.checkpoint is None:
            _check_final(spec)
        now_ns = world.clock.monotonic_ns
        outputs = Outputs(spec.outputs, standings)
        live = LivePartition(engine, outputs, context, now_ns=now_ns)
        is_restored = base.checkpoint is not None
        intake = UpstreamIntake(spec, engine, live, context, world.clock, is_restored=is_restored)
        storing = CheckpointWriter(
            owner,
            context.settings.snapshot_rows,
            world.executor,
            context.emit,
            intake.wake,
            now_ns=now_ns,
            stored=intake.stored,
        )
        storing.last = base.checkpoint

        async def notes() -> dict[str, str]:
            intake.storing()
            marks = {mark_of(output): spec.outputs.mark(output) for output in standings}
            held = holders(standings) | self.ownership.notes if live.has_committed else {}
            return marks | held

        recovery = Reconciliation(
            spec,
            base,
            engine,
            outputs,
            intake,
            context=context,
            guards=world.guards,
            is_of_others=is_of_others,
            ahead=ahead,
        )
        return DurableRun(
            live,
            intake,
            storing,
            world,
            context,
            recovery=recovery,
            base=base,
            newest=base.checkpoint,
            sends=spec.sends,
            notes=notes,
            is_hasty=_was_killed(base, standings, owner),
            is_asked=self.take_asked,
        )


def _is_of(name: str, senders: Collection[str], *, is_of_others: bool) -> bool:
    """Return whether an entry of a cut is of a sender, perhaps of a generation with more."""
    sender = name.partition("/")[0]
    return sender in senders or (is_of_others and sender.isdecimal())


def _check_final(spec: StageSpec) -> None:
    """Raise SnapshotError where rows that are final may be in the checkpoints alone."""
    if spec.plan.frees_rows:
        raise SnapshotError(
            "the outputs have not come as far as the oldest checkpoint of this generation, which "
            "holds rows that its senders have released: let the former generation serve again, and "
            "switch once it has come further"
        )


def _was_killed(base: StartingPoint, standings: Mapping[str, OutputStatus], owner: Owner) -> bool:
    """Return whether an output is beyond the checkpoint, as it is not after a graceful end.

    Without outputs: whether the last task has not come to a checkpoint.
    """
    if not standings:
        return owner.is_after_nothing_stored
    at = None if base.checkpoint is None else dict(base.checkpoint.cut)
    return any(
        one.unfinished is not None or (one.committed is not None and dict(one.committed.cut) != at)
        for one in standings.values()
    )

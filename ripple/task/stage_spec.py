"""The specification of a downstream task, and the checkpoints from which it can resume."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from ripple.core import cut as cuts
from ripple.core.events import CheckpointSkipped
from ripple.engine.machine.follower import Follower
from ripple.engine.migration.adaptation import decide
from ripple.engine.snapshots.snapshot import SnapshotError
from ripple.storage.fenced import DamagedError
from ripple.task.restore import StartingPoint

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ripple.connectors.commit_group import OutputStatus, ReadableGroup
    from ripple.engine.snapshots.snapshot import Snapshot
    from ripple.model.pipeline.plan import Plan
    from ripple.storage.checkpoint import Checkpoint, Checkpoints
    from ripple.task.edges import Publisher, Upstream
    from ripple.world.ports import Executor


@dataclass(frozen=True, slots=True)
class StageSpec:
    """The specification of a task over a subscription to the upstream stage.

    stage, number: its stage, and its number there. count: of the senders, the upstream stage's
    partitions. follows: brings their changes. wake: is set when changes arrive or are requested,
    and to end a wait. outputs: opened once no other owner can write. sends: publishes to the
    downstream stage.
    """

    plan: Plan
    stage: int
    number: int
    count: int
    follows: Upstream[Any]
    outputs: ReadableGroup
    sends: Publisher | None = None
    wake: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def senders(self) -> tuple[str, ...]:
        """The senders as the engine names them, by their numbers."""
        return tuple(map(str, range(self.count)))

    def fresh(self) -> Follower:
        """Return the partition with nothing in it."""
        return Follower(self.plan, self.stage, self.senders, self.number, finals=True)

    async def restore(
        self,
        checkpoints: Checkpoints,
        listed: Sequence[Checkpoint],
        standings: Collection[OutputStatus],
        executor: Executor,
    ) -> tuple[Follower, StartingPoint]:
        """Restore the first of the listed checkpoints that is not ahead of an output, if any.

        listed: newest first. standings: of the outputs. Raises StoreError and ChangedPlanError.
        """
        skipped: list[CheckpointSkipped] = []
        for one in listed:
            try:
                _check_behind(one, standings)
                snapshot = await checkpoints.read(one)
                self._check(snapshot)
                # Other code is no reason to begin with nothing: what was written is of the one
                # that was.
                snapshot = decide(self.plan, snapshot, staged=True).snapshot or snapshot
                restore = partial(Follower.restore, self.plan, snapshot, finals=True)
                engine = await executor.run(restore)
            except (DamagedError, SnapshotError) as error:
                skipped.append(CheckpointSkipped(one.name, str(error)))
                continue
            return engine, StartingPoint(one, engine.cut, tuple(skipped), frozenset())
        engine = self.fresh()
        return engine, StartingPoint(None, engine.cut, tuple(skipped), frozenset())

    def _check(self, snapshot: Snapshot) -> None:
        if (snapshot.stage, snapshot.partition) != (self.stage, self.number):
            raise SnapshotError(
                f"it is of partition {snapshot.partition} of stage {snapshot.stage}: begin with "
                "another folder of checkpoints"
            )
        if sorted(snapshot.epochs) != sorted(self.senders):
            raise SnapshotError(
                f"it follows {len(snapshot.epochs)} partitions, but the stage before has "
                f"{len(self.senders)} now"
            )


def _check_behind(one: Checkpoint, standings: Collection[OutputStatus]) -> None:
    for standing in standings:
        commit = standing.committed
        if commit is not None and commit.cut and not cuts.has_reached(commit.cut, one.cut):
            raise SnapshotError(f"it is ahead of what {standing.name} holds")

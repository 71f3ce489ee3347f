"""Where a downstream task begins: the newest state that is not ahead of an output, if any."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ripple.core import cut as cuts
from ripple.core.events import CheckpointSkipped
from ripple.engine.machine.follower import Follower
from ripple.engine.migration.adaptation import decide
from ripple.engine.snapshots.snapshot import SnapshotError
from ripple.storage.fenced import DamagedError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from ripple.connectors.commit_group import OutputStatus
    from ripple.engine.snapshots.snapshot import Snapshot
    from ripple.model.pipeline.plan import Plan
    from ripple.storage.checkpoint import Checkpoint, Checkpoints
    from ripple.world.ports import Executor


@dataclass(frozen=True, slots=True)
class DownstreamStart:
    """The state from which a task resumes.

    checkpoint: None for none. engine: the partition as it was then. skipped: newer checkpoints
    that were skipped.
    """

    checkpoint: Checkpoint | None
    engine: Follower
    skipped: tuple[CheckpointSkipped, ...]


@dataclass(frozen=True, slots=True)
class StagePosition:
    """The position of a downstream partition: its stage, its number there, and its senders."""

    plan: Plan
    stage: int
    number: int
    senders: tuple[str, ...]

    def fresh(self) -> Follower:
        """Return the partition with nothing in it."""
        return Follower(self.plan, self.stage, self.senders, self.number, finals=True)

    async def base(
        self,
        checkpoints: Checkpoints,
        listed: Sequence[Checkpoint],
        standings: Collection[OutputStatus],
        executor: Executor,
    ) -> DownstreamStart:
        """Restore the first of the listed checkpoints from which the task can resume.

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
            return DownstreamStart(one, engine, tuple(skipped))
        return DownstreamStart(None, self.fresh(), tuple(skipped))

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
        if commit is not None and not cuts.is_within(one.cut, commit.cut):
            raise SnapshotError(f"it is ahead of what {standing.name} holds")

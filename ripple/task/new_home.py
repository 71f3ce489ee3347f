"""A partition in the new home of its state, and the outputs that it takes over."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ripple.connectors.locate import look_at, reached_at
from ripple.core import cut as cuts
from ripple.engine.migration.homes import HomeError
from ripple.task.former_home import GRACEFULLY
from ripple.task.grouping import group_at
from ripple.task.outputs import Outputs
from ripple.task.published_rows import published
from ripple.task.reconciliation import mark_of
from ripple.task.restore import holders

if TYPE_CHECKING:
    import pyarrow as pa

    from ripple.connectors.commit_group import OutputStatus, ReadableGroup
    from ripple.connectors.connector import Part
    from ripple.connectors.contract import Commit
    from ripple.engine.machine import Engine
    from ripple.engine.machine.follower import Follower
    from ripple.world.ports import World


@dataclass(frozen=True, slots=True)
class MovedOutput:
    """An output of a partition. at: its cut in the former home; None of one with a new topic.

    lacking: the changes after that cut. rows: those of a new topic, None if the state has them all.
    """

    name: str
    place: str
    at: dict[str, int] | None = None
    lacking: pa.RecordBatch | None = None
    rows: pa.Table | None = None


@dataclass(frozen=True, slots=True)
class NewPartition:
    """A partition of the new home. part: of a cluster's stage; None of one process."""

    engine: Engine | Follower
    stage: int
    part: Part | None
    outputs: tuple[MovedOutput, ...]

    @property
    def places(self) -> dict[str, str]:
        """The places of its outputs."""
        return {one.name: one.place for one in self.outputs}

    def look(self) -> None:
        """Raise HomeError unless each output is where its state is. Raises as reading them does."""
        plan = self.engine.plan
        for one in self.outputs:
            look = look_at(one.place, plan, one.name, part=self.part)
            if look is not None:
                look()
            ask = reached_at(one.place, plan, one.name, self.part)
            self._check(one, None if ask is None else ask())

    def _check(self, one: MovedOutput, commit: Commit | None) -> None:
        """Raise HomeError unless an output is where its state was, or is already."""
        cut = None if commit is None else dict(commit.cut)
        if cut in (one.at, self.engine.cut):
            return
        if one.at is None:
            raise HomeError(f"{one.place} for output {one.name!r} is not new: name another topic")
        there = "nothing" if cut is None else f"everything up to {cuts.brief(cut)}"
        raise HomeError(
            f"output {one.name!r} holds {there}, and its state is at {cuts.brief(one.at)}: "
            f"{GRACEFULLY}"
        )

    async def hand_over(self, epoch: int, world: World) -> dict[str, str]:
        """Take the outputs over, at this cut; return the notes of the checkpoint."""
        is_alone = self.part is None
        group = group_at(
            self.places,
            self.engine.plan,
            world.executor,
            epoch=None if is_alone else epoch,
            part=self.part,
            stage=self.stage,
        )
        try:
            standings = await group.open(epoch)
            outputs = Outputs(group, standings)
            schemas = {n: rows.schema for n, rows in self.engine.stabilize().outputs.items()}
            for one in self.outputs:
                self._write(one, outputs, standings[one.name], schemas[one.name])
            await outputs.commit(self.engine)
            return {**self._marks(group), **holders(standings)}
        finally:
            await group.close()

    def _marks(self, group: ReadableGroup) -> dict[str, str]:
        if not self.stage:
            return {}
        return {mark_of(one.name): group.mark(one.name) for one in self.outputs}

    def _write(
        self, one: MovedOutput, outputs: Outputs, standing: OutputStatus, schema: pa.Schema
    ) -> None:
        self._check(one, standing.committed)
        if standing.committed is not None and dict(standing.committed.cut) != one.at:
            return  # by a move that was interrupted
        rows = one.lacking
        if one.at is None:
            table = self.engine.table(one.name) if one.rows is None else one.rows
            if table.num_rows:
                rows = published(schema, [table], table.slice(0, 0).select([]))
        if rows is not None:
            outputs.correct(one.name, rows, self.engine)

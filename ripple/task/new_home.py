"""A partition in the new home of its state, and the outputs that it takes over."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ripple.connectors.locate import look_at, reached_at
from ripple.core import cut as cuts
from ripple.engine.migration.homes import HomeError
from ripple.task.grouping import group_at
from ripple.task.outputs import Outputs
from ripple.task.published_rows import published
from ripple.task.reconciliation import mark_of
from ripple.task.restore import holders

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

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

    def look(self, way_out: str) -> None:
        """Raise HomeError unless each output is where its state is. Raises as reading them does.

        way_out: of the error, as for ``taken``.
        """
        plan = self.engine.plan
        for one in self.outputs:
            look = look_at(one.place, plan, one.name, part=self.part)
            if look is not None:
                look()
            ask = reached_at(one.place, plan, one.name, self.part)
            self.check(one, None if ask is None else ask(), way_out)

    def check(self, one: MovedOutput, commit: Commit | None, way_out: str) -> None:
        """Raise HomeError unless an output is where its state was, or is already."""
        cut = None if commit is None else dict(commit.cut)
        if cut in (one.at, self.engine.cut):
            return
        if one.at is None:
            raise HomeError(f"{one.place} for output {one.name!r} is not new: name another topic")
        there = "nothing" if cut is None else f"everything up to {cuts.brief(cut)}"
        raise HomeError(
            f"output {one.name!r} holds {there}, and its state is at {cuts.brief(one.at)}: "
            f"{way_out}"
        )

    @asynccontextmanager
    async def taken(self, epoch: int, world: World, way_out: str) -> AsyncIterator[Taken]:
        """Take the outputs over, so that nobody else writes them. Raises HomeError as ``look``."""
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
            for one in self.outputs:
                self.check(one, standings[one.name].committed, way_out)
            yield Taken(self, group, standings)
        finally:
            await group.close()


@dataclass(frozen=True, slots=True)
class Taken:
    """A partition of the new home that alone writes its outputs."""

    part: NewPartition
    group: ReadableGroup
    standings: Mapping[str, OutputStatus]

    async def hand_over(self) -> dict[str, str]:
        """Commit the new form of the cut to each output; return the notes of the checkpoint."""
        engine, outputs = self.part.engine, Outputs(self.group, self.standings)
        schemas = {name: rows.schema for name, rows in engine.stabilize().outputs.items()}
        for one in self.part.outputs:
            self._write(one, outputs, schemas[one.name])
        await outputs.commit(engine)
        return {**self._marks(), **holders(self.standings)}

    def _marks(self) -> dict[str, str]:
        if not self.part.stage:
            return {}
        return {mark_of(one.name): self.group.mark(one.name) for one in self.part.outputs}

    def _write(self, one: MovedOutput, outputs: Outputs, schema: pa.Schema) -> None:
        standing, engine = self.standings[one.name], self.part.engine
        if standing.committed is not None and dict(standing.committed.cut) != one.at:
            return  # by a move that was interrupted
        rows = one.lacking
        if one.at is None:
            table = engine.table(one.name) if one.rows is None else one.rows
            if table.num_rows:
                rows = published(schema, [table], table.slice(0, 0).select([]))
        if rows is not None:
            outputs.correct(one.name, rows, engine)

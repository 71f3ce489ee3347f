"""Moves the state of several stages, and its outputs, between one process and a cluster.

Nobody computes meanwhile. The order of effects: all outputs are taken over, so that nobody else
writes them; the record in the former store that the state has left; each output, at the same cut in
its new form; the checkpoints, never ahead of an output. Each step is done once, so a move that was
interrupted is repeated.

Invariant: where the record is, each output was at the state's cut, or further by this move alone.
So whoever owns a partition of the former store looks for the record once it has its outputs, too.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace
from functools import partial
from math import gcd
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from ripple.connectors.connector import Part
from ripple.connectors.locate import newest_owner_at
from ripple.core import cut as cuts
from ripple.engine.edges.edge_changes import targets_of
from ripple.engine.migration.apart import apart
from ripple.engine.migration.homes import ANEW, HomeError, Moved, check_plan
from ripple.engine.migration.together import together
from ripple.model.keys.partitioner import partition_numbers
from ripple.model.pipeline.topology import outputs_of, stage_of_output, stages_of
from ripple.storage.checkpoint import Checkpoints, partitions
from ripple.storage.checkpoint.checkpoints import newest_epoch
from ripple.storage.checkpoint.moved import leave, moved_to
from ripple.storage.fenced import FencedError
from ripple.storage.log_uri import PREFIX
from ripple.task.endpoints import EndpointUris
from ripple.task.former_home import GRACEFULLY, KEPT, Former, former_in
from ripple.task.former_rows import shown_in, with_changes
from ripple.task.new_home import MovedOutput, NewPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy.typing as npt

    from ripple.core.cut import Cut
    from ripple.model.pipeline.plan import Plan
    from ripple.world.ports import ObjectStore, World

    Ints = npt.NDArray[np.int64]

_BATCH_ROWS = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A move. sources: URIs by name. sinks: those of outputs as they are.

    new_sinks: of outputs that get another place, with the whole table. partitions: of the first
    stage of a cluster, None for as many as the sources allow. to: the new store, for people.
    """

    plan: Plan
    sources: Mapping[str, str]
    sinks: Mapping[str, str]
    new_sinks: Mapping[str, str]
    partitions: int | None
    to: str
    world: World

    async def run(self, here: ObjectStore, there: ObjectStore) -> Cut:
        """Move the state from ``here`` to ``there``; return the cut of the sources.

        Raises HomeError with nothing changed where it cannot move, and OutputError, StoreError and
        OSError, after which it may be repeated.
        """
        check_plan(self.plan, 1)
        left = await self._check_stores(here, there)
        former = await former_in(here, self.plan)
        moved = self._moved(former)
        parts = self._parts(former, moved)
        self._check_named()
        epoch = 1 + max(
            await newest_epoch(here, self.plan.name),
            await newest_epoch(there, self.plan.name),
            *(newest_owner_at(part.places[name], self.plan, name)
              for part in parts for name in part.places),
        )  # fmt: skip
        way_out = f"it has gone on in {self.to}" if left else GRACEFULLY
        for part in parts:
            part.look(way_out)
        async with AsyncExitStack() as held:
            taken = [
                await held.enter_async_context(part.taken(epoch, self.world, way_out))
                for part in parts
            ]
            to = await leave(here, self.plan.name, self.to)
            if to != self.to:
                raise HomeError(f"the state of {self.plan.name!r} moves to {to}: repeat that move")
            marks = [await one.hand_over() for one in taken]
            for number, (part, notes) in enumerate(zip(parts, marks, strict=True)):
                await self._store(there, number, part, {**former.notes, **notes}, epoch)
            await self._fence(here, epoch)
        return {name: at for one in moved.stages[0] for name, at in one.cut.items()}

    async def _check_stores(self, here: ObjectStore, there: ObjectStore) -> str | None:
        """Return where the state has moved, None if this is the first attempt."""
        name = self.plan.name
        left = await moved_to(here, name)
        if left not in (None, self.to):
            raise HomeError(f"the state of {name!r} has moved to {left}: move it from there")
        if left is None and await partitions(there, name):
            raise HomeError(f"{self.to} has state of {name!r} already: name a store without any")
        if await moved_to(there, name) is not None:
            raise HomeError(f"the state of {name!r} has left {self.to} before: name another store")
        return left

    def _check_named(self) -> None:
        """Raise HomeError where some outputs are named and others would be left behind."""
        named = {*self.sinks, *self.new_sinks}
        left = [one.name for one in self.plan.outputs if one.name not in named]
        if named and left:
            raise HomeError(
                f"outputs of {self.plan.name!r} move with the state: name {', '.join(left)}, too, "
                "with --sink; or one that was never written with --new-sink"
            )

    def _moved(self, former: Former) -> Moved:
        if not former.is_whole:
            return together(self.plan, former.stages)
        ends = self._ends()
        count = self.partitions or gcd(*dict(ends.counts()).values())
        check_plan(self.plan, count)
        if count > 1 and (ends.divides or ends.repartitioned):
            raise HomeError(
                f"records of {self.plan.name!r} would be repartitioned, and such state is not "
                f"divided: let the first stage have one partition (--partitions 1){ANEW}"
            )
        whole = former.stages[0][0]
        names = [name for names in ends.names().values() for name in names]
        cuts.check_inputs(whole.cut, names, "the state")
        inputs = [
            [one for each in ends.names().values() for one in each[number::count]]
            for number in range(count)
        ]
        if count == 1:
            return apart(self.plan, whole, inputs)
        return apart(self.plan, whole, inputs, self._partition_of(ends, count))

    def _ends(self) -> EndpointUris:
        return EndpointUris(
            self.plan,
            self.sources,
            {},
            batch_rows=_BATCH_ROWS,
            executor=self.world.executor,
            partitions=self.partitions or 0,
        )

    def _partition_of(self, ends: EndpointUris, count: int) -> Callable[[pa.Table], Ints]:
        known = next((one for one in ends.divisions() if one.tells(self.plan)), None)
        if known is None:
            raise HomeError(
                f"nothing says which partition of the source has a key of {self.plan.name!r}: "
                f"let the first stage have one partition (--partitions 1){ANEW}"
            )
        return partial(_numbers, known.key, known.partitions, count)

    def _parts(self, former: Former, moved: Moved) -> list[NewPartition]:
        """Return the partitions of the new home, with their outputs."""
        plan, parts = self.plan, []
        for stage, made in enumerate(moved.stages):
            names = (
                outputs_of(plan, stage) if former.is_whole else {one.name for one in plan.outputs}
            )
            for number, engine in enumerate(made):
                part = Part(number, len(made)) if former.is_whole else None
                outputs = [
                    self._output(former, moved, name, Part(number, len(made)))
                    for name in sorted(names)
                    if name in self.sinks or name in self.new_sinks
                ]
                parts.append(NewPartition(engine, stage, part, tuple(outputs)))
        return parts

    def _output(self, former: Former, moved: Moved, name: str, part: Part) -> MovedOutput:
        of_stage = stage_of_output(self.plan, name)
        counted = 1 if former.is_whole else len(former.stages[of_stage])
        number, count = part
        place = self.new_sinks.get(name)
        if place is None and counted != count:
            raise HomeError(
                f"output {name!r} has {counted} partitions here and {count} there: name a new "
                f"topic that gets its whole table, --new-sink {name}=log:DIR/TOPIC"
            )
        if place is not None and self.plan.output(name).is_stream:
            raise HomeError(f"output {name!r} is of events, which go on in their topic alone")
        for given in filter(None, (place, self.sinks.get(name))):
            if not given.startswith(PREFIX):
                raise HomeError(f"output {name!r} is in {given}, and only those in logs move")
        if place is None:
            lacking = moved.lacking.get((of_stage, number, name))
            at = dict(former.cut_of(of_stage, number))
            return MovedOutput(name, self.sinks[name], at=at, lacking=lacking)
        senders = range(counted) if not former.is_whole else [number]
        lacks = [moved.lacking.get((of_stage, one, name)) for one in senders]
        rows = self._over(name, of_stage, part, counted, [one for one in lacks if one is not None])
        return MovedOutput(name, place, rows=rows)

    def _over(
        self,
        name: str,
        stage: int,
        part: Part,
        counted: int,
        lacking: Sequence[pa.RecordBatch],
    ) -> pa.Table | None:
        """Return a partition's rows of an output, None if its state has all of them.

        counted: partitions of the output in the former home. lacking: changes after its rows.
        """
        output = self.plan.output(name)
        if not self.plan.frees(self.plan.fold(output.of)):
            return None
        if name not in self.sinks:
            raise HomeError(
                f"output {name!r} shows rows that are over, which its topic alone has: name that, "
                f"too, --sink {name}=log:DIR/TOPIC"
            )
        rows = shown_in(self.sinks[name], self.plan, output, counted)
        if part.of > 1 and rows.num_rows:
            rows = rows.filter(pa.array(self._divide(stage, part.of, rows) == part.number))
        return with_changes(self.plan, output, rows, lacking)

    def _divide(self, stage: int, count: int, rows: pa.Table) -> Ints:
        """Return which partition of a stage has each row of an output."""
        if not stage:
            return self._partition_of(self._ends(), count)(rows)
        (batch,) = rows.combine_chunks().to_batches()
        return targets_of(batch, stages_of(self.plan)[stage].key, count)

    async def _store(
        self,
        store: ObjectStore,
        number: int,
        part: NewPartition,
        notes: Mapping[str, str],
        epoch: int,
    ) -> None:
        """Store a partition's state, unless it was: its new home may have gone on."""
        world = self.world
        checkpoints = Checkpoints(store, self.plan.name, number, executor=world.executor)
        if await checkpoints.list():
            return
        snapshot = part.engine.snapshot()
        own = {
            name: text
            for name, text in notes.items()
            if not name.startswith(KEPT) or name.partition("/")[2] in snapshot.cut
        }
        owner = await checkpoints.claim(world.clock, world.random, epoch=epoch)
        await owner.write(replace(snapshot, notes={**snapshot.notes, **own}))

    async def _fence(self, store: ObjectStore, epoch: int) -> None:
        """Take the former store's partitions from owners that still run: they end and look."""
        world = self.world
        for _, number in await partitions(store, self.plan.name):
            former = Checkpoints(store, self.plan.name, number, executor=world.executor)
            with suppress(FencedError):  # by another attempt of this move
                await former.claim(world.clock, world.random, epoch=epoch)


def _numbers(key: Sequence[str], inputs: int, count: int, table: pa.Table) -> Ints:
    """Return which of ``count`` partitions has each row, by the input that its key is in."""
    batches = table.select(list(key)).combine_chunks().to_batches()
    if not batches:
        return np.empty(0, np.int64)
    if any(column.null_count for column in batches[0].columns):
        raise HomeError(
            f"a key without {', '.join(key)} may be in any partition of the source: let the first "
            "stage have one (--partitions 1)"
        )
    found: Ints = partition_numbers(batches[0], key, inputs).astype(np.int64) % count
    return found

"""Checkpoints of a live run against a fresh evaluation at the same cuts."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ripple.core import cut as cuts
from ripple.core.errors import InputError, RippleError
from ripple.engine.machine import Engine
from ripple.spark import state
from ripple.spark.finding import (
    OUR_ENGINE,
    Difference,
    Finding,
    difference,
    events_of,
    table_of,
)
from ripple.spark.fresh import Fresh
from ripple.spark.options import absolute_store
from ripple.spark.oracle import first_difference
from ripple.spark.starting_point import NOTHING, StartingPoint
from ripple.storage.checkpoint import CheckpointError, Checkpoints, partitions
from ripple.storage.checkpoint.format import fold_name
from ripple.storage.checkpoint.origin import HISTORY_EPOCH
from ripple.storage.fenced import ChainError
from ripple.storage.store.opening import store_to_read

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ripple.engine.snapshots.snapshot import Snapshot
    from ripple.model.pipeline.plan import Plan
    from ripple.spark.packets import Packet
    from ripple.spark.parcel import Parcel
    from ripple.spark.progress import Reporter
    from ripple.spark.shares import Share
    from ripple.storage.checkpoint.format import Checkpoint

CHECKPOINTS = "checkpoints:"


def checkpoints_at(place: str, plan: Plan) -> tuple[str, list[int]]:
    """Return the store in ``checkpoints:...``, and the partitions with checkpoints in it.

    Raises InputError if there are none, and StoreError.
    """
    store = absolute_store(place.removeprefix(CHECKPOINTS))
    there = asyncio.run(_partitions(store))
    own = [number for name, number in there if name == plan.name]
    if not own:
        others = ", ".join(sorted({name for name, _ in there}))
        of = f", but of {others}" if others else ""
        raise InputError(f"{store} has no checkpoints of pipeline {plan.name!r}{of}")
    return store, own


def markers_for(given: str | None, against: Iterable[str]) -> str | None:
    """Return the place of a run's markers: the given one, or its checkpoints; else None."""
    own = [place.removeprefix(CHECKPOINTS) for place in against if place.startswith(CHECKPOINTS)]
    return given if given is not None or not own else own[0]


async def _partitions(place: str) -> tuple[tuple[str, int], ...]:
    async with store_to_read(place) as store:
        return await partitions(store)


@dataclass(frozen=True, slots=True)
class AgainstCheckpoints:
    """The checkpoints of one partition against a fresh evaluation at their cuts."""

    parcel: Parcel
    shares: tuple[Share, ...]
    store: str
    pipeline: str
    partition: int
    engine: str = OUR_ENGINE
    beginning: StartingPoint = NOTHING
    reporter: Reporter | None = None

    def run(self) -> Iterator[Packet]:
        """Yield a finding over all retained checkpoints."""
        plan = self.parcel.plan()
        finding = Finding("checkpoints", f"{self.pipeline}/{self.partition}")
        kept = asyncio.run(self._kept())
        # The backfilled starting point would be compared with itself.
        kept = [one for one in kept if one[0].epoch != HISTORY_EPOCH]
        rising = cuts.in_order([checkpoint.cut for checkpoint, _ in kept])
        kept.sort(key=lambda one: rising.index(one[0].cut))
        fresh: Fresh | None = None
        for checkpoint, snapshot in kept:
            where = f"checkpoint {checkpoint.name} at {cuts.text(checkpoint.cut)}"
            if checkpoint.topology_hash != plan.topology_hash:
                raise InputError(
                    f"{where} is of topology {checkpoint.topology_hash}, and the pipeline is "
                    f"{plan.topology_hash}: give the pipeline file of that topology"
                )
            if checkpoint.stage:
                finding.note = f"stage {checkpoint.stage} is downstream: not compared"
                break
            fresh = fresh or Fresh(
                plan,
                self.shares,
                checkpoint.cut,
                self.engine,
                staged=checkpoint.stage is not None,
                begun=self.beginning.state(plan, checkpoint.cut),
            )
            finding.note = self.beginning.note
            fresh.go_to(checkpoint.cut, self.reporter, last=rising[-1])
            finding.cases += 1
            finding.rows = fresh.rows
            finding.differences += self._differences(fresh, checkpoint, snapshot, where)
            if finding.differences:
                self.beginning.excuse_state(finding)
                break
        yield finding.packet()

    async def _kept(self) -> list[tuple[Checkpoint, Snapshot | RippleError]]:
        """Return the checkpoints, newest first, each with its snapshot or the error of reading it.

        All are read before the evaluation, during which their owner may delete some.
        """
        async with store_to_read(self.store) as store:
            checkpoints = Checkpoints(store, self.pipeline, self.partition)
            kept: list[tuple[Checkpoint, Snapshot | RippleError]] = []
            for one in await checkpoints.list():
                try:
                    kept.append((one, await checkpoints.read(one)))
                except (ChainError, CheckpointError) as error:
                    if one.name in [each.name for each in await checkpoints.list()]:
                        kept.append((one, error))
            return kept

    def _differences(
        self, fresh: Fresh, checkpoint: Checkpoint, snapshot: Snapshot | RippleError, where: str
    ) -> Iterator[Difference]:
        """Yield the differences of a checkpoint from an engine that has read up to its cut."""
        if isinstance(snapshot, RippleError):
            yield Difference(f"{where} cannot be read: {snapshot}")
            return
        try:
            cut = {name: snapshot.cut[name] for name in fresh.engine.cut}
            restored = Engine.restore(fresh.plan, replace(snapshot, cut=cut))
        except RippleError as error:
            yield Difference(f"{where} cannot be restored: {error}")
            return
        ours = fresh.engine.snapshot()
        differing = list(self._of_rows(fresh, restored, ours, checkpoint, where))
        # Open windows have emitted nothing yet.
        yield from differing or self._of_state(fresh, restored, ours, checkpoint, where)

    def _of_rows(
        self, fresh: Fresh, restored: Engine, ours: Snapshot, checkpoint: Checkpoint, where: str
    ) -> Iterator[Difference]:
        plan, engine, read = fresh.plan, fresh.engine, (self.shares, dict(checkpoint.cut))
        stored = checkpoint.digests.items()
        differing = [name for name, both in stored if both != ours.digests[name]]
        for output in plan.outputs:
            if output.name not in restored.digests:
                continue
            expected = table_of(engine.table(output.name), plan, output)
            there = table_of(restored.table(output.name), plan, output)
            if output.of in differing or first_difference(expected, there) is not None:
                yield difference(plan, output, where, (expected, there), read)

    def _of_state(
        self, fresh: Fresh, restored: Engine, ours: Snapshot, checkpoint: Checkpoint, where: str
    ) -> Iterator[Difference]:
        theirs = restored.snapshot()
        for node_key, table in ours.tables.items():
            parted = state.first_difference(table, theirs.tables[node_key])
            if parted is None:
                continue
            key, expected, found = parted
            yield Difference(
                f"{where}: the state of {fold_name(node_key)} at {key} is {found or 'absent'}, "
                f"and {expected or 'absent'} in a fresh evaluation",
                key=repr(key),
                expected=expected,
                found=found,
                events=events_of(fresh.plan, key, self.shares, dict(checkpoint.cut)),
            )

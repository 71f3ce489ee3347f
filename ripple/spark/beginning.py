"""What a pipeline has begun from, and where its code has changed, as its store says."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from ripple.core.errors import InputError
from ripple.storage.checkpoint import Checkpoints
from ripple.storage.checkpoint.origin import HISTORY_EPOCH
from ripple.storage.store.opening import store_to_read
from ripple.task.restore import changes_of

if TYPE_CHECKING:
    from collections.abc import Collection

    from ripple.engine.snapshots.snapshot import Snapshot
    from ripple.model.pipeline.plan import Plan
    from ripple.spark.finding import Finding
    from ripple.storage.checkpoint.format import Checkpoint

_UNKNOWN = (
    "where the pipeline began from history, or its code has changed, add --against "
    "checkpoints:STORE, which knows it"
)


@dataclass(frozen=True, slots=True)
class Beginning:
    """What whoever computes a pipeline anew must know of its life.

    store: "" where nobody has said one. history: checkpoints of history that was backfilled, one
    for each partition. changed: by output, the cut up to which it shows what other code has made.
    migrated: the cut at which a function has made state, "" if none did.
    """

    store: str = ""
    history: tuple[Checkpoint, ...] = ()
    changed: Mapping[str, str] = field(default_factory=dict)
    migrated: str = ""

    @classmethod
    def of(cls, store: str, pipeline: str, partitions: Collection[int]) -> Self:
        """Look into a store. Raises DamagedError and StoreError."""
        return asyncio.run(cls._of(store, pipeline, partitions))

    @classmethod
    async def _of(cls, place: str, pipeline: str, partitions: Collection[int]) -> Self:
        history: list[Checkpoint] = []
        changed: dict[str, str] = {}
        migrated = ""
        async with store_to_read(place) as store:
            for number in partitions:
                listed = await Checkpoints(store, pipeline, number).list()
                history += [one for one in listed if one.epoch == HISTORY_EPOCH]
                outputs, at = changes_of(listed)
                changed |= outputs
                migrated = migrated or at
        return cls(place, tuple(history), changed, migrated)

    @property
    def note(self) -> str:
        """What is to be said of a comparison that begins there."""
        if not self.history:
            return ""
        return (
            "it began from history that was backfilled, and so did the evaluation: "
            "ripple spark receipt computes that again"
        )

    def state(self, plan: Plan, cut: Mapping[str, int]) -> Snapshot | None:
        """Return what the partition that reads the inputs of a cut has begun from, if not nothing.

        Raises InputError where history is of other partitions or code, DamagedError and StoreError.
        """
        if not self.history:
            return None
        for one in self.history:
            if one.topology_hash != plan.topology_hash:
                raise InputError(
                    f"{self.store} began from history of topology {one.topology_hash}, and the "
                    f"pipeline is {plan.topology_hash}: what it shows is of both, and of neither "
                    "can it be computed anew"
                )
            if set(one.cut) == set(cut):
                return asyncio.run(self._read(one))
        raise InputError(
            f"{self.store} began from history in {len(self.history)} partitions, none of which "
            f"reads {', '.join(cut)}: give the checkpoints of the run that has written this"
        )

    async def _read(self, checkpoint: Checkpoint) -> Snapshot:
        async with store_to_read(self.store) as store:
            return await Checkpoints(store, checkpoint.pipeline, checkpoint.partition).read(
                checkpoint
            )

    def excuse_rows(self, output: str, finding: Finding) -> None:
        """Make a note of differences that a change of code explains; else say who would know."""
        at = self.changed.get(output)
        if at is not None and finding.differences:
            finding.note = (
                f"its code has changed, and up to {at} it shows what other code has made: it "
                "differs from what this code makes of all, so it was not compared"
            )
            finding.differences.clear()
            finding.cases = 0
        elif finding.differences and not self.store:
            finding.note = _UNKNOWN

    def excuse_state(self, finding: Finding) -> None:
        """Likewise of state, where a function has made some of it."""
        if self.migrated and finding.differences:
            finding.note = (
                f"its state was migrated at {self.migrated}, which no log tells, and differs from "
                "what this code makes of all: it was not compared"
            )
            finding.differences.clear()
            finding.cases = 0


NOTHING = Beginning()

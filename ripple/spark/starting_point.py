"""The starting point of a pipeline and the changes of its code, from its store."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from ripple.core.errors import InputError
from ripple.model.pipeline.input_names import is_markers
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
    "if the pipeline began from history, or its code has changed, add --against "
    "checkpoints:STORE, which records it"
)


@dataclass(frozen=True, slots=True)
class StartingPoint:
    """The history of a pipeline that a fresh evaluation must know.

    store: "" if none was given. history: backfilled checkpoints, one for each partition. changed:
    by output, the cut up to which its rows were made by other code. migrated: the cut at which a
    function migrated the state, "" if none did.
    """

    store: str = ""
    history: tuple[Checkpoint, ...] = ()
    changed: Mapping[str, str] = field(default_factory=dict)
    migrated: str = ""

    @classmethod
    def of(cls, store: str, pipeline: str, partitions: Collection[int]) -> Self:
        """Read a store. Raises DamagedError and StoreError."""
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
        """The note for a comparison that begins there."""
        if not self.history:
            return ""
        return (
            "it began from history that was backfilled, and so did the evaluation: "
            "ripple spark receipt computes that again"
        )

    def state(self, plan: Plan, cut: Mapping[str, int]) -> Snapshot | None:
        """Return the starting point of the partition that reads a cut's inputs, None for nothing.

        Raises InputError if history is of other partitions or code, DamagedError and StoreError.
        """
        if not self.history:
            return None
        for one in self.history:
            if one.topology_hash != plan.topology_hash:
                raise InputError(
                    f"{self.store} began from history of topology {one.topology_hash}, and the "
                    f"pipeline is {plan.topology_hash}: its output is of both, and "
                    "cannot be computed from either"
                )
            if set(one.cut) == {name for name in cut if not is_markers(name)}:
                return asyncio.run(self._read(one))
        raise InputError(
            f"{self.store} began from history in {len(self.history)} partitions, none of which "
            f"reads {', '.join(cut)}: give the checkpoints of the run that wrote this"
        )

    async def _read(self, checkpoint: Checkpoint) -> Snapshot:
        async with store_to_read(self.store) as store:
            return await Checkpoints(store, checkpoint.pipeline, checkpoint.partition).read(
                checkpoint
            )

    def excuse_rows(self, output: str, finding: Finding) -> None:
        """Note differences that a change of code explains; without a store, say how to find out."""
        at = self.changed.get(output)
        if at is not None and finding.differences:
            finding.note = (
                f"its code has changed, and its rows up to {at} were made by other code: they "
                "differ from this code's results, so they were not compared"
            )
            finding.differences.clear()
            finding.cases = finding.differing = 0
        elif finding.differences and not self.store:
            finding.note = _UNKNOWN

    def excuse_state(self, finding: Finding) -> None:
        """Note differences of state that was migrated by a function."""
        if self.migrated and finding.differences:
            finding.note = (
                f"its state was migrated at {self.migrated}, which is in no log, and differs from "
                "this code's result: it was not compared"
            )
            finding.differences.clear()
            finding.cases = 0


NOTHING = StartingPoint()

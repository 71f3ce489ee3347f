"""The state that a pipeline of several stages has in its former home."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ripple.engine.migration.homes import ANEW, HomeError
from ripple.model.pipeline.topology import stages_of
from ripple.storage.checkpoint import Checkpoints, partitions
from ripple.storage.checkpoint.origin import ORIGIN

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ripple.core.cut import Cut
    from ripple.engine.snapshots.snapshot import Snapshot
    from ripple.model.pipeline.plan import Plan
    from ripple.world.ports import ObjectStore

KEPT = "log/", "start/"
"""The notes of checkpoints by input, which stay right."""

GRACEFULLY = "start its former home again, and end it with SIGTERM, which commits and stores all"


@dataclass(frozen=True, slots=True)
class Former:
    """The state to move, by stage; is_whole: of one process. notes: by input, of checkpoints."""

    stages: tuple[tuple[Snapshot, ...], ...]
    is_whole: bool
    notes: Mapping[str, str]

    def cut_of(self, stage: int, number: int) -> Cut:
        """Return the cut of the outputs of a partition."""
        return self.stages[0][0].cut if self.is_whole else self.stages[stage][number].cut


async def former_in(store: ObjectStore, plan: Plan) -> Former:
    """Return the newest state of each partition. Raises HomeError where one has none."""
    found: dict[int, Snapshot] = {}
    for _, number in await partitions(store, plan.name):
        latest = await Checkpoints(store, plan.name, number).latest()
        if latest is None:
            raise HomeError(f"partition {number} of {plan.name!r} has no checkpoint: {GRACEFULLY}")
        if ORIGIN in latest.snapshot.notes:
            raise HomeError(f"history was backfilled into {plan.name!r}, and does not move{ANEW}")
        found[number] = latest.snapshot
    if not found:
        raise HomeError(f"there is no state of {plan.name!r} in the former store")
    notes = {
        name: text
        for one in found.values()
        for name, text in one.notes.items()
        if name.startswith(KEPT)
    }
    if found.keys() == {0} and found[0].stage is None:
        return Former(((found[0],),), is_whole=True, notes=notes)
    return Former(_by_stage(plan, found), is_whole=False, notes=notes)


def _by_stage(plan: Plan, found: Mapping[int, Snapshot]) -> tuple[tuple[Snapshot, ...], ...]:
    stages = tuple(
        tuple(one for _, one in sorted(found.items()) if one.stage == stage.number)
        for stage in stages_of(plan)
    )
    for stage, made in zip(stages_of(plan), stages, strict=True):
        numbers = [one.partition for one in made]
        wanted = stage.partitions or max(numbers, default=0) + 1
        if numbers != [*range(wanted)]:
            raise HomeError(
                f"stage {stage.number} of {plan.name!r} has {wanted} partitions, and checkpoints "
                f"of {numbers}: {GRACEFULLY}"
            )
    return stages

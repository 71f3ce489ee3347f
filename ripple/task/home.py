"""The owner kind of a store's state: one process that computes all stages, or a cluster."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ripple.engine.migration.adaptation import ChangedPlanError, of_other_home
from ripple.storage.checkpoint import Checkpoints
from ripple.storage.fenced import DamagedError

if TYPE_CHECKING:
    from ripple.model.pipeline.plan import Plan
    from ripple.storage.checkpoint import Checkpoint
    from ripple.world.ports import ObjectStore


async def check_home(store: ObjectStore, plan: Plan, *, staged: bool) -> None:
    """Raise ChangedPlanError where a pipeline cannot resume here; nothing is touched.

    staged: whether each stage has partitions of its own here. One partition is asked for all; what
    is damaged is reported when it is restored. Raises StoreError.
    """
    listed: tuple[Checkpoint, ...] = ()
    with suppress(DamagedError):
        listed = await Checkpoints(store, plan.name).list()
    why = of_other_home(plan.name, listed[0].stage, staged=staged) if listed else ""
    if why:
        raise ChangedPlanError(why)

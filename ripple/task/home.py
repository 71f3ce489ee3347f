"""The owner kind of a store's state: one process that computes all stages, or a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.engine.migration.adaptation import ChangedPlanError, of_other_home
from ripple.storage.checkpoint import newest_of_each

if TYPE_CHECKING:
    from ripple.model.pipeline.plan import Plan
    from ripple.world.ports import ObjectStore


async def check_home(store: ObjectStore, plan: Plan, *, staged: bool) -> None:
    """Raise ChangedPlanError where a pipeline cannot resume here; nothing is touched.

    staged: whether each stage has partitions of its own here. The first partition with a checkpoint
    is asked for all; what is damaged is reported when it is restored. Raises StoreError.
    """
    async for one in newest_of_each(store, plan.name):
        why = of_other_home(plan.name, one.stage, staged=staged)
        if why:
            raise ChangedPlanError(why)
        return

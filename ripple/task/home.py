"""The owner kind of a store's state: one process that computes all stages, or a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.engine.migration.adaptation import ChangedPlanError, of_other_home
from ripple.model.pipeline.topology import is_spread
from ripple.storage.checkpoint import newest_of_each

if TYPE_CHECKING:
    from ripple.model.pipeline.plan import Plan
    from ripple.world.ports import ObjectStore


def other_division(plan: Plan, stage: int | None, *, divides: bool) -> str:
    """Return why a cluster cannot resume from state of ``stage``, None for all; "" if it can.

    divides: whether it divides records of a source anew, which follows from the inputs. Plans of
    several stages have their state by stages in any case.
    """
    if is_spread(plan) or divides == (stage is not None):
        return ""
    was, now = "a cluster that divides records anew", "none are, of these sources"
    if divides:
        was, now = "a run, or a cluster, that divides no records anew", "some are, of these sources"
    return (
        f"the state of {plan.name!r} is that of {was}, and {now}: give the sources that it has "
        "read; or name another store and other outputs, to compute everything from the first record"
    )


async def check_division(store: ObjectStore, plan: Plan, *, divides: bool) -> None:
    """Raise ChangedPlanError for ``other_division`` of a store's state. Raises StoreError."""
    async for one in newest_of_each(store, plan.name):
        why = other_division(plan, one.stage, divides=divides)
        if why:
            raise ChangedPlanError(why)
        return


async def check_home(store: ObjectStore, plan: Plan, *, staged: bool) -> None:
    """Raise ChangedPlanError where a pipeline cannot resume here; nothing is touched.

    staged: whether each stage has partitions of its own here. The first partition with a checkpoint
    is asked for all; a damaged one is reported when it is restored. Raises StoreError.
    """
    async for one in newest_of_each(store, plan.name):
        why = of_other_home(plan.name, one.stage, staged=staged)
        if why:
            raise ChangedPlanError(why)
        return

"""Whether a store's state fits a plan here: in one process with all stages, or in a cluster."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from ripple.core.errors import InputError
from ripple.engine.migration.adaptation import ChangedPlanError, of_other_home, refusals
from ripple.engine.migration.evolution import compare
from ripple.engine.migration.staying import is_only_more
from ripple.model.pipeline.topology import is_spread
from ripple.storage.checkpoint import bare, newest_of_each
from ripple.storage.checkpoint.moved import moved_to

if TYPE_CHECKING:
    from collections.abc import Callable

    from ripple.engine.snapshots.snapshot import Snapshot
    from ripple.model.pipeline.plan import Plan
    from ripple.storage.checkpoint import Checkpoint
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


def takes_more(plan: Plan, snapshot: Snapshot) -> bool:
    """Return whether a cluster has a new branch beside this state, if its outputs hold nothing."""
    if is_spread(plan):
        return is_only_more(plan, snapshot)
    return snapshot.stage is None and compare(plan, snapshot).is_only_more


async def check_code(store: ObjectStore, plan: Plan, *, divides: bool) -> None:
    """Raise ChangedPlanError if partitions of a cluster would reject their checkpoints.

    Each partition checks its own again when it starts. A new branch is taken: its outputs hold
    nothing, and if one of them does, its partition says so. Raises PlanError for an ask that does
    not fit the recorded answers, and StoreError.
    """
    staged = divides or is_spread(plan)

    def why(one: Checkpoint) -> str:
        found = bare(one)
        if other := other_division(plan, one.stage, divides=divides):
            # Sources are to blame where the code is that of the state.
            changed = () if one.stage is None else refusals(plan, found, staged=True)
            return "; ".join(changed) or other
        reasons = refusals(plan, found, staged=staged)
        if reasons and not divides and takes_more(plan, found):
            return ""
        return "; ".join(reasons)

    found = await _check(store, plan, why)
    if plan.asks and found is not None and not found.stage:
        await _check_asks(store, plan, found)


async def check_home(store: ObjectStore, plan: Plan, *, staged: bool) -> None:
    """Raise ChangedPlanError where a pipeline cannot resume here; nothing is touched.

    staged: whether each stage has partitions of its own here. Raises StoreError.
    """
    await _check(store, plan, lambda one: of_other_home(plan.name, one.stage, staged=staged))


async def _check(
    store: ObjectStore, plan: Plan, why: Callable[[Checkpoint], str]
) -> Checkpoint | None:
    """Ask the first partition with a checkpoint for all, of each stage where the code is other.

    A damaged one only fails itself later. Returns the first one.
    """
    if (moved := await moved_to(store, plan.name)) is not None:
        raise ChangedPlanError(f"the state of {plan.name!r} has moved to {moved}: resume there")
    asked: dict[int | None, Checkpoint] = {}
    async for one in newest_of_each(store, plan.name, plan.topology_hash):
        if one.stage in asked:
            continue
        if reason := why(one):
            raise ChangedPlanError(reason)
        asked[one.stage] = one
        if one.stage is None or one.topology_hash == plan.topology_hash:
            break
    return next(iter(asked.values()), None)


async def _check_asks(store: ObjectStore, plan: Plan, one: Checkpoint) -> None:
    # Few pipelines have it.
    from ripple.task.asks.answer_log import AnswerLog  # noqa: PLC0415

    log = AnswerLog(store, plan.name, one.partition)
    with suppress(InputError):  # a damaged log only fails its partition later
        await log.read()
        log.check_plan(plan, [one.cut])

"""Partitions per stage, checks of their numbers, and the outputs of each stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ripple.control.assignment import stage_names
from ripple.control.assignment.stage_names import DIVIDING
from ripple.core.errors import PlanError
from ripple.model.pipeline.division import divided_into
from ripple.model.pipeline.repartitioned import repartitioned_into
from ripple.model.pipeline.stages import Transport
from ripple.model.pipeline.topology import is_spread, stages_of, transport_into

if TYPE_CHECKING:
    from collections.abc import Collection

    from ripple.control.assignment import Assignment
    from ripple.model.pipeline.plan import Plan

FIRST = "main"


def has_state_edge(plan: Plan) -> bool:
    """Return whether partitions of different stages subscribe to each other over TCP."""
    stages = stages_of(plan) if is_spread(plan) else ()
    return any(transport_into(plan, stage.number) is Transport.EXCHANGE for stage in stages)


def has_lanes(plan: Plan, *, divides: bool) -> bool:
    """Return whether stages hand records to each other in logs on the world's disk."""
    return divides or (is_spread(plan) and transport_into(plan, 1) is Transport.LOG)


def stage_counts(
    plan: Plan,
    *,
    divides: bool = False,
    needs_one: bool = False,
    repartitioned: Collection[str] = (),
) -> tuple[tuple[str, int], ...]:
    """Return the stages of a plan by name, with their numbers of partitions.

    0: as configured for the cluster. With one partition, one engine computes all stages. divides:
    whether a stage in front repartitions the source. needs_one: whether one partition of the first
    stage must have all records, however they are divided. repartitioned: the other repartitioned
    sources, each with its own stage in front.
    """
    first, *later = stages_of(plan)
    if later and not is_spread(plan):
        return ((FIRST, 1),)
    counts = [(name_of(stage.number), stage.partitions or 1) for stage in later]
    if divides:
        return ((DIVIDING, 0), (FIRST, divided_into(plan)), *counts)
    own = [(stage_names.dividing(name), 0) for name in repartitioned]
    if repartitioned:
        return (*own, (FIRST, repartitioned_into(plan, dict.fromkeys(repartitioned))), *counts)
    return ((name_of(first.number), int(needs_one)), *counts)


def check_stages(plan: Plan, assignment: Assignment) -> None:
    """Raise PlanError if a plan cannot be computed with so many partitions."""
    divides = assignment.stages[0].name == DIVIDING
    window = plan.folds[0].window if divides else None
    if window is not None and window.shows_partial:
        raise PlanError(
            f"{plan.name} shows partial results by {window.trigger!r}, and its records are "
            "repartitioned: partial results would depend on the order of reading"
        )
    if is_spread(plan) or len(stages_of(plan)) == 1 or len(assignment.shares) == 1:
        return
    raise PlanError(
        f"{plan.name} has an event edge after a downstream stage, which cannot write the log that "
        f"it needs: it runs with one partition, not with {len(assignment.shares)}"
    )


def name_of(stage: int) -> str:
    """Return the name of a plan's stage, by its number."""
    return FIRST if stage == 0 else f"stage-{stage}"
